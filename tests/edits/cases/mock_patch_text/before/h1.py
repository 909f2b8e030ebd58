def limit():
    return 1
def twice():
    return limit() * 2
