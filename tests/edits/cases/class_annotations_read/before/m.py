class Row:
    a: int

def f():
    return list(Row.__annotations__)
