def f():
    try:
        raise ValueError("x")
    except ValueError as error:
        return error.__traceback__.tb_lineno
