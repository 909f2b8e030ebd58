COMMANDS = []
def command(fn):
    COMMANDS.append(fn)
    return fn
@command
def tokenize(x):
    return x.split()
@command
def serve(port):
    print(port)
def f():
    return tokenize("a b")
