class Report:
    def go(self):
        return 1
class A:
    def run(self):
        return 1
def f():
    return A().run()
