import copyreg
import pickle
class A:
    n = 0
def rebuild():
    a = A()
    a.n = 2
    return a
copyreg.pickle(A, lambda a: (rebuild, ()))
def f():
    return pickle.loads(pickle.dumps(A())).n
