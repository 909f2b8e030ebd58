def fill(d):
    d["n"] = 1
