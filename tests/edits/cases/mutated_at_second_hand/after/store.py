ITEMS = []
def add(x):
    ITEMS.append(x)
