def h(n):
    while n < 5:
        n += 1
    return n
def f():
    return h(0)
