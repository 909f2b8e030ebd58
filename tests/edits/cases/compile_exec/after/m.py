PARTS = ['def g():', '    return X']
X = 2
def f():
    space = {'X': X}
    exec(compile('\n'.join(PARTS), 'x', 'exec'), space)
    return space['g']()
