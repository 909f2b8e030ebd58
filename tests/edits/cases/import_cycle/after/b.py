import a
def middle():
    return a.low()
