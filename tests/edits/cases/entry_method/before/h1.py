class A:
    def go(self):
        return 1
