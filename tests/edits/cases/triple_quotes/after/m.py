def f():
    return """a"""
