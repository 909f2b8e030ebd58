def h():
    try:
        raise KeyError("k")
    except KeyError as error:
        raise ValueError("v") from None
def f():
    try:
        h()
    except ValueError as error:
        return repr(error.__cause__)
