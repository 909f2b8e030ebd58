import other
import pkg
def f():
    return pkg.b.g()
