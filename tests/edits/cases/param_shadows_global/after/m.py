def clean(x):
    return x + 1
def h(clean):
    return clean * 2
def f():
    return h(3)
