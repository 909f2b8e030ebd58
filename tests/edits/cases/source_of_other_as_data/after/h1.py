N = 1  # the number one
