import patch
import textwrap
def f():
    return textwrap.dedent("a")
