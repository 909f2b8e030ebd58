import contextvars
LEVEL = contextvars.ContextVar("level", default=2)
def f():
    return LEVEL.get()
