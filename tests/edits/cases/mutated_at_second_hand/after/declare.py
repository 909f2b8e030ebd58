import store
def declare(*names):
    for name in names:
        store.add(name.upper())
