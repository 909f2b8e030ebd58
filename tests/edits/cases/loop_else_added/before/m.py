def f():
    for n in range(2):
        if n > 5:
            break
    return n
