def rare():
    return 1
