def f():
    with open("data.txt") as stream:
        return stream.read()
