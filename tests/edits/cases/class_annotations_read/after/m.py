class Row:
    a: int
    b: int

def f():
    return list(Row.__annotations__)
