def h(a: int, *b: str, c: "list[int]"=1, **d: object):
    return a, b, c, d
