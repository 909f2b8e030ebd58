class Meta(type):
    cache = {}

