class Row:
    n = 2
