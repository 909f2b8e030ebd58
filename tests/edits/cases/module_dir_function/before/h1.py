def __dir__():
    return ['a']
