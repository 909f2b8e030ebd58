import contextlib
from h1 import closed
def f():
    found = []
    with contextlib.ExitStack() as stack:
        stack.callback(closed, found)
    return found
