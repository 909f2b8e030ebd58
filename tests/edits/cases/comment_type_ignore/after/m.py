def h(x):
    return x + 1  # type: ignore  # noqa: E501
def f():
    return h(1)
