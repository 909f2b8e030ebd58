import h3
h3.K = 5

