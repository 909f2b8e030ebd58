import asyncio
from h1 import h
async def main():
    return await asyncio.to_thread(h)
def f():
    return asyncio.run(main())
