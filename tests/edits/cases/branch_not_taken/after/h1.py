def rare():
    return 2
