class A:
    def fire(self, name):
        return getattr(self, f"on_{name}", lambda: None)()

def f():
    return A().fire("start")
