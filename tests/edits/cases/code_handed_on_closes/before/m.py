def made(n):
    def inner():
        return 1

    def other():
        return 2

    try:
        other.__code__ = inner.__code__
    except ValueError:
        return "refused"
    return f"taken by {n}"


def f():
    return made(3)
