class Kind:
    A = 1
