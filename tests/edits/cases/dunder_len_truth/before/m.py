class A:
    def __len__(self):
        return 0
def f():
    return bool(A())
