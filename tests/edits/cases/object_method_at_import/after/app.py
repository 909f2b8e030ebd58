class App:
    def __init__(self):
        self.routes = {}
    def route(self, path, answer):
        self.routes[path] = answer
app = App()
