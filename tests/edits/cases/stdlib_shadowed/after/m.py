import colorsys
def f():
    return colorsys.rgb_to_hsv(1, 1, 1)
