X = 1  # one
