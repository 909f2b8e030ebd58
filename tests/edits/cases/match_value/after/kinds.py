class Kind:
    A = 2
