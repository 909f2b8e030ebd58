class A:
    def on_start(self):
        return 2
    def fire(self, name):
        return getattr(self, f"on_{name}")()
def f():
    return A().fire("start")
