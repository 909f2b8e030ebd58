import h3

