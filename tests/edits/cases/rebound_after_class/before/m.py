N = 1
class A:
    n = N
N = 2
def f():
    return A.n
