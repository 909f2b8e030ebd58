class Row:
    def __reversed__(self):
        return iter([3, 2, 1])
def f():
    return list(reversed(Row()))
