from shape import Shape
def area(self):
    return 2
setattr(Shape, "area", area)
