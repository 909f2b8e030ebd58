import threading
class Work(threading.Thread):
    def run(self):
        self.result = 1
def f():
    w = Work()
    w.start()
    w.join()
    return w.result
