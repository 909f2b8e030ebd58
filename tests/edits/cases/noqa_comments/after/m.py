from h1 import scale, Box
LIMIT = 10  # noqa: E501
def f():  # pragma: no cover
    # fmt: off
    found = [scale(n) for n in range(3)]
    if len(found) > LIMIT:
        return None
    return {"a": found, "b": Box(2).size()}
