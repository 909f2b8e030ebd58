class Box:
    __size = 4
    def size(self):
        return self.__size
def f():
    return Box().size()
