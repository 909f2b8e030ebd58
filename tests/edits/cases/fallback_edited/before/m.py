try:
    from fast_impl import h
except ImportError:
    from slow_impl import h
def f():
    return h()
