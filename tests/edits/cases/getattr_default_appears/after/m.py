class A:
    def fire(self, name):
        return getattr(self, f"on_{name}", lambda: None)()
    def on_start(self):
        return 2

def f():
    return A().fire("start")
