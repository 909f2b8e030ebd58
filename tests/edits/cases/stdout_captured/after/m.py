import contextlib
import io
from h1 import h
def f():
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        h()
    return out.getvalue()
