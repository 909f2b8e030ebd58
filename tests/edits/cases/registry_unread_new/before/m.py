COMMANDS = []
def command(fn):
    COMMANDS.append(fn)
    return fn
@command
def tokenize(x):
    return x.split()
def f():
    return tokenize("a b")
