def f():
    try:
        assert [] , "nothing"
    except AssertionError as error:
        return str(error)
