def f():
    match {"kind": "a", "n": 2}:
        case {"sort": kind, **rest}:
            return kind, rest
        case _:
            return None
