import unittest
class Checks(unittest.TestCase):
    def test_a(self):
        pass
    def test_b(self):
        pass
def f():
    return unittest.defaultTestLoader.getTestCaseNames(Checks)
