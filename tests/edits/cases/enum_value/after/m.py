from kinds import Kind
def f():
    return Kind.A.value
