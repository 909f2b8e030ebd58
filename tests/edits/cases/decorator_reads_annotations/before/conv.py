def converts(fn):
    kinds = fn.__annotations__
    def inner(**given):
        return fn(**{k: kinds[k](v) for k, v in given.items()})
    return inner
