import threading
class Mine(threading.local):
    n = 1
HELD = Mine()
def f():
    return HELD.n
