class A:
    def __len__(self):
        return 1
def f():
    return bool(A())
