def t_b():
    return 2
def t_a():
    return 1
def f():
    return [n for n in globals() if n.startswith("t_")]
