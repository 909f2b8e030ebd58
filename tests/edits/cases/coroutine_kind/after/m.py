import inspect
async def h():
    return 1
def f():
    return inspect.iscoroutinefunction(h)
