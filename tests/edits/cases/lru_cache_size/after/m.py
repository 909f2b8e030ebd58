import functools
@functools.lru_cache(maxsize=16)
def h(x):
    return x
def f():
    h(1)
    return h.cache_info().maxsize
