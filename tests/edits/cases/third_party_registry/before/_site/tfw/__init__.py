HANDLERS = {}
def handler(name):
    def register(fn):
        HANDLERS[name] = fn
        return fn
    return register
def call(name, *a):
    return HANDLERS[name](*a)
