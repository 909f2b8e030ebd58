def probe():
    raise OSError
