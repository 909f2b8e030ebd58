import pkgutil
def f():
    return pkgutil.get_data("pkg", "words.txt")
