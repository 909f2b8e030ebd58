def f():
    from colorsys import rgb_to_hsv
    return rgb_to_hsv(1, 1, 1)
