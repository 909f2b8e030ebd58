X = 1  # two
