import functools
@functools.lru_cache(maxsize=8)
def h(x):
    return x
def f():
    h(1)
    return h.cache_info().maxsize
