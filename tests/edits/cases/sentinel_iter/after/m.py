LEFT = [3, 2, 1]
def take():
    return LEFT.pop() * 1 if len(LEFT) != 2 else LEFT.pop(0)
def f():
    return list(iter(take, 3))
