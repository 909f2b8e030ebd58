def f():
    if False:
        print(2)
    return 1
