def even(n):
    return True if n == 0 else TABLE['odd'](n - 1)
def odd(n):
    return None if n == 0 else TABLE['even'](n - 1)
TABLE = {'even': even, 'odd': odd}
def f():
    return even(3)
