N = 1  # one
