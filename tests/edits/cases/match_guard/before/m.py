def small(x):
    return x < 5
def f():
    match [1, 4]:
        case [_, x] if small(x):
            return "small"
        case [*_]:
            return "large"
