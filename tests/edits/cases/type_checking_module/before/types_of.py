class Row:
    n = 1
