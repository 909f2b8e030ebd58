import h1
import h2
for _name in dir(h1):
    if not _name.startswith('_'):
        setattr(h2, _name, getattr(h1, _name))
def f():
    return h2.X
