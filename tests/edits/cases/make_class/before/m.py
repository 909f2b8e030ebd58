def size(self):
    return 1
A = type('A', (), {'size': size})
def f():
    return A().size()
