X = 1
def h():
    return 1

