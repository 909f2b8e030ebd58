from shapes import Shape, Square

