def f():
    space = {}
    exec("from h1 import h\nx = h()", space)
    return space["x"]
