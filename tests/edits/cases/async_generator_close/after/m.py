import asyncio
FOUND = []
async def numbers():
    try:
        yield 1
    finally:
        FOUND.append("shut")
async def main():
    found = numbers()
    await found.__anext__()
    await found.aclose()
def f():
    asyncio.run(main())
    return FOUND
