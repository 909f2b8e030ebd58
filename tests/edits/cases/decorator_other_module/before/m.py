import tools.deco
@tools.deco.wrap
def h():
    return 0
def f():
    return h()
