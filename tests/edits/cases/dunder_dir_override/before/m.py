class Box:
    def __dir__(self):
        return ["x"]
def f():
    return dir(Box())
