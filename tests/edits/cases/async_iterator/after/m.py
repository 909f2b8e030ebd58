import asyncio
class Count:
    def __init__(self):
        self.n = 0
    def __aiter__(self):
        return self
    async def __anext__(self):
        self.n += 1
        if self.n > 3:
            raise StopAsyncIteration
        return self.n
async def collect():
    return [x async for x in Count()]
def f():
    return asyncio.run(collect())
