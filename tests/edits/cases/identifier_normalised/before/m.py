def f():
    ﬁne = 1
    return fine
