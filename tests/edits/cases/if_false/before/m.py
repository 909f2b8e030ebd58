def f():
    if False:
        print(1)
    return 1
