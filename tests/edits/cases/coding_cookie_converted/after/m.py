# -*- coding: utf-8 -*-
X = 'é'
def f():
    return X
