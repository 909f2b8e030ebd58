from functools import cached_property
class A:
    @cached_property
    def size(self):
        return 2
def f():
    return A().size
