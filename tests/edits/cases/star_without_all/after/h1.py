def h():
    return 1
def len(x):
    return 99

