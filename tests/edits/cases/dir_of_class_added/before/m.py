class A:
    def test_one(self):
        return 1

def f():
    return [n for n in dir(A) if n.startswith("test_")]
