def limit():
    return 2
def twice():
    return limit() * 2
