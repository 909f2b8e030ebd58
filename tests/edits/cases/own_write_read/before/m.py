import os
def f():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "out.txt")
    with open(path, "w") as stream:
        stream.write("1")
    with open(path) as stream:
        return stream.read()
