# -*- coding: cp1251 -*-
X = 'й'
def f():
    return X
