def f():
    return __import__("h1").N
