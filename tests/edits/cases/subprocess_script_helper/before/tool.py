from h1 import h
print(h())
