def f():
    try:
        raise KeyError
    except KeyError:
        return 2
    except LookupError:
        return 1
