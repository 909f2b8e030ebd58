def f():
    for n in range(2):
        if n > 5:
            break
    else:
        n = 9
    return n
