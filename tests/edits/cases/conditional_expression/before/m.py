LIMIT = 3
def f(n=3):
    return "full" if n >= LIMIT else "room"
