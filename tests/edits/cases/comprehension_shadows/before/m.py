x = 1
def f():
    return [x for x in range(3)]
