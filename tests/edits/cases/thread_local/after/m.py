import threading
class Mine(threading.local):
    n = 2
HELD = Mine()
def f():
    return HELD.n
