from errors import Lost
def f():
    try:
        raise Lost("x")
    except ValueError:
        return "value"
    except Exception:
        return "other"
