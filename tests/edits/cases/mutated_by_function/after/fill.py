def fill(d):
    d["n"] = 2
