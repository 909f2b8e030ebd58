import inspect
import checks
def f():
    return [g() for n, g in inspect.getmembers(checks, inspect.isfunction)]
