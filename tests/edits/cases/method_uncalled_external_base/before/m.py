import threading
class A(threading.Thread):
    def run(self):
        self.n = 1
    def report(self):
        return 2
def f():
    a = A()
    a.start()
    a.join()
    return a.n
