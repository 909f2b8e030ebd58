def f():
    print("still working")
    return 1
