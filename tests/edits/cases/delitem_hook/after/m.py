class Table:
    def __init__(self):
        self.gone = []
    def __delitem__(self, key):
        self.gone.append(key * 2)
def f():
    table = Table()
    del table["a"]
    return table.gone
