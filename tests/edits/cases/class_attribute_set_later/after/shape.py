class Shape:
    sides = 0
