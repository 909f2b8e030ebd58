import io
with io.StringIO("b") as stream:
    TEXT = stream.read()
def f():
    return TEXT
