import h1
def f():
    if h1.ready():
        return "yes"
    return "no"
