from shapes import Shape, Square
Shape.register(Square)

