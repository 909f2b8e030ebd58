def work(x):
    return x + 1
