from importlib import resources
def f():
    return sorted(one.name for one in resources.files("texts").iterdir() if one.name.endswith(".txt"))
