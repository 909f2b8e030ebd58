class Bad(ValueError):
    def hint(self):
        return 1
def f():
    try:
        raise Bad('x')
    except Bad as error:
        return str(error)
