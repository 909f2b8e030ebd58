import asyncio
async def one(x):
    await asyncio.sleep(0)
    return x * 2
async def all_of():
    return await asyncio.gather(*(one(x) for x in range(3)))
def f():
    return asyncio.run(all_of())
