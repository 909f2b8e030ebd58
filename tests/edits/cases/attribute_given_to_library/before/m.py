import unittest
class Checks(unittest.TestCase):
    def test_a(self):
        pass
def f():
    return unittest.defaultTestLoader.getTestCaseNames(Checks)
