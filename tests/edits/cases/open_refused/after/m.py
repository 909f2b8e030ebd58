import os
def f():
    try:
        with open(os.path.join(os.path.dirname(__file__), "table.csv")) as stream:
            return stream.read()
    except FileNotFoundError:
        return ""
