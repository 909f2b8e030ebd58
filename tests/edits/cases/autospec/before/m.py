from unittest import mock
class A:
    def go(self):
        pass
def f():
    return hasattr(mock.create_autospec(A), 'halt')
