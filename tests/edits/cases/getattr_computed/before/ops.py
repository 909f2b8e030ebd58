def do_add(a, b):
    return a + b
