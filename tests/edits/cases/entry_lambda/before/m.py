K = 1
f = lambda: K
