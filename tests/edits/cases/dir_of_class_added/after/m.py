class A:
    def test_one(self):
        return 1
    def test_two(self):
        return 2

def f():
    return [n for n in dir(A) if n.startswith("test_")]
