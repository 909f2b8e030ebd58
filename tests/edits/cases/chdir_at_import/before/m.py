import os
os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "a"))
def f():
    with open("n.txt") as stream:
        return stream.read()
