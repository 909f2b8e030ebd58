def check_a():
    return 1

