def clean(x):
    return x
def h(clean):
    return clean * 2
def f():
    return h(3)
