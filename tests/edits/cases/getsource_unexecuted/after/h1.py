def tool():
    return 1  # the number one
