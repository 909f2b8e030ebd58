N = 1
N = 2
class A:
    n = N
def f():
    return A.n
