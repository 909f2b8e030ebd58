n = 1
while n < 10:
    n *= 2
def f():
    return n
