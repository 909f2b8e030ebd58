class Packet:
    def __bytes__(self):
        return b"ab"
def f():
    return bytes(Packet())
