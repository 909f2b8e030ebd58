def h():
    try:
        return {}["a"]
    except KeyError:
        return "caught"
def f():
    return h()
