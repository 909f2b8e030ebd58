LEFT = [3, 2, 1]
def take():
    return LEFT.pop()
def f():
    return list(iter(take, 3))
