def check_a():
    return 1
def check_b():
    return 2

