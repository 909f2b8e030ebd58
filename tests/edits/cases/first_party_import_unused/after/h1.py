LIMIT = 1
def h():
    return LIMIT
