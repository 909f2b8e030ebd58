import contextvars
MODE = contextvars.ContextVar('mode', default='a')
def f():
    return MODE.get()
