import h1
h1.h = lambda: 3
