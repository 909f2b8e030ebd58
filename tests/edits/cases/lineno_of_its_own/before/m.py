import warnings


class Block:
    def __init__(self, lineno):
        self.lineno = lineno


def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.warn("nobody hears it")
    return [Block(n).lineno for n in range(3)]


def f():
    return quiet()
