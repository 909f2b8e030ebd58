OPTIONS = {"help": "what it is", "doctest": "a kind of text", "script": "a name"}


def shown():
    """The help texts."""
    return sorted(OPTIONS.values())


def f():
    return [shown(), OPTIONS["help"]]
