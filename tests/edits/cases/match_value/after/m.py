from kinds import Kind
def h(x):
    match x:
        case Kind.A:
            return "a"
        case _:
            return "other"
def f():
    return h(1)
