class Bad(ValueError):
    pass
def f():
    try:
        raise Bad('x')
    except Bad as error:
        return str(error)
