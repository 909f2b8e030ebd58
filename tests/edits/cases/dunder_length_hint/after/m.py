import operator
class Rows:
    def __length_hint__(self):
        return 6
def f():
    return operator.length_hint(Rows())
