from importlib import resources
def f():
    return resources.files("pkg").joinpath("words.txt").read_text()
