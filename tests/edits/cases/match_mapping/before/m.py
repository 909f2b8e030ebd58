def f():
    match {"kind": "a", "n": 2}:
        case {"kind": kind, **rest}:
            return kind, rest
        case _:
            return None
