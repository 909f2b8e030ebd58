import io
with io.StringIO("a") as stream:
    TEXT = stream.read()
def f():
    return TEXT
