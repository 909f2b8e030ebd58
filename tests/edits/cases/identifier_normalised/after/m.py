def f():
    fine = 1
    return fine
