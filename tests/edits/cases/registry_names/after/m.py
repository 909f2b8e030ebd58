COMMANDS = {}
def command(fn):
    COMMANDS[fn.__name__] = fn
    return fn
@command
def count(xs):
    return len(xs)
@command
def clear(xs):
    xs.clear()
def f():
    return sorted(COMMANDS)
