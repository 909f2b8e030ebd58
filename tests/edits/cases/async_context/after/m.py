import asyncio
class Guard:
    async def __aenter__(self):
        return self
    async def __aexit__(self, kind, error, trace):
        return False
async def work():
    async with Guard():
        raise ValueError("x")
def f():
    return asyncio.run(work())
