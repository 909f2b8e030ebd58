from h1 import A
f = A().go
