class Box:
    x = 1
    def __enter__(self):
        return self
    def __exit__(self, *error):
        return None
def f():
    try:
        with Box():
            return 1
    except TypeError:
        return 2
