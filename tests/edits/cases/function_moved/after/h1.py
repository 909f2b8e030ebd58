from h2 import h

