class Meta(type):
    cache = {}
    def __call__(cls):
        if cls not in Meta.cache:
            Meta.cache[cls] = super().__call__()
        return Meta.cache[cls]

