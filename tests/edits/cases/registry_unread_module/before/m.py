from cli import command
@command
def tokenize(x):
    return x.split()
@command
def serve(port):
    print(port)
def f():
    return tokenize("a b")
