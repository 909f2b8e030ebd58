import threading
FOUND = []
def told(args):
    FOUND.append(args.exc_type.__name__)
def fails():
    raise ValueError
def f():
    before = threading.excepthook
    threading.excepthook = told
    thread = threading.Thread(target=fails)
    thread.start()
    thread.join()
    threading.excepthook = before
    return FOUND
