def h(xs):
    for x in xs:
        if x > 5:
            break
    else:
        return "nothing"
    return x
def f():
    return h([1, 2])
