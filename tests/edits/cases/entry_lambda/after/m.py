K = 2
f = lambda: K
