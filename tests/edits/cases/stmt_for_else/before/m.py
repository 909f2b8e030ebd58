def h(xs):
    for x in xs:
        if x > 5:
            break
    else:
        return "none"
    return x
def f():
    return h([1, 2])
