def h():
    try:
        return {}["a"]
    except IndexError:
        return "caught"
def f():
    return h()
