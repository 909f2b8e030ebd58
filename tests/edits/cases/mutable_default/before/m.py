def h(x, seen=[0]):
    seen.append(x)
    return len(seen)
def f():
    h(1)
    return h(2)
