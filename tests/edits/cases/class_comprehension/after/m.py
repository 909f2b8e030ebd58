K = 2
class A:
    K = 10
    xs = [K for _ in range(2)]
def f():
    return A.xs
