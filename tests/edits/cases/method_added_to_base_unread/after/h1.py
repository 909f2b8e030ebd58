class Base:
    x = 1
    def weight(self):
        return 4
