class Table(dict):
    def __setitem__(self, key, value):
        super().__setitem__(key, value + 1)
def f():
    table = Table()
    table["a"] = 1
    return table
