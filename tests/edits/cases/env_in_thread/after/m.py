import os
import threading
def f():
    found = []
    thread = threading.Thread(target=lambda: found.append(os.environ.get("ZZ_MODE")))
    thread.start()
    thread.join()
    return found
