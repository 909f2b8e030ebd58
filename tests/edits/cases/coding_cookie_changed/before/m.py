# -*- coding: latin-1 -*-
X = 'é'
def f():
    return X
