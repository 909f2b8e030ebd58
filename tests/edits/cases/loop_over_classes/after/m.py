class A:
    name = 'a'
class B:
    name = 'c'
ALL = [A, B]
def f():
    return [one.name for one in ALL]
