class Base:
    pass
    def close(self):
        return "base"

