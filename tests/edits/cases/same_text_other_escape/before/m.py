X = 'a\tb'
def f():
    return X
