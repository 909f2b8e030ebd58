OPTIONS = {"help": "what it is", "doctest": "a kind of text", "script": "a name"}


def shown():
    """All help texts, sorted."""
    return sorted(OPTIONS.values())


def f():
    return [shown(), OPTIONS["help"]]
