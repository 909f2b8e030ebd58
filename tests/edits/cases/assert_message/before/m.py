def f():
    try:
        assert [] , "empty"
    except AssertionError as error:
        return str(error)
