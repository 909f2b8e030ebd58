import inspect
async def g():
    pass
def f():
    return inspect.iscoroutinefunction(g)
