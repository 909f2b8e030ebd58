def f():
    try:
        raise KeyError
    except LookupError:
        return 1
    except KeyError:
        return 2
