class Box:
    __size = 3
    def size(self):
        return self.__size
def f():
    return Box().size()
