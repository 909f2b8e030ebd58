import threading
FOUND = []
def late():
    FOUND.append(2)
def f():
    timer = threading.Timer(0, late)
    timer.start()
    timer.join()
    return FOUND
