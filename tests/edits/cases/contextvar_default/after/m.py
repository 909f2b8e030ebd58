import contextvars
MODE = contextvars.ContextVar('mode', default='b')
def f():
    return MODE.get()
