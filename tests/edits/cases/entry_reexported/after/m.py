from h1 import f
