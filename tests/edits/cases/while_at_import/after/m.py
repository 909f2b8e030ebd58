n = 1
while n < 100:
    n *= 2
def f():
    return n
