import unittest
class T(unittest.TestCase):
    def test_a(self):
        pass
    def test_b(self):
        pass

def f():
    return unittest.TestLoader().loadTestsFromTestCase(T).countTestCases()
