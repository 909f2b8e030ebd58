def f():
    print("working")
    return 1
