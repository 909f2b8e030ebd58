def f():
    try:
        x = 1
    except ValueError:
        x = 2
    else:
        x += 2
    return x
