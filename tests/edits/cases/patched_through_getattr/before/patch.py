import h1
for name in ("SIZE",):
    setattr(h1, name, 2)
