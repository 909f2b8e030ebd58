class Packet:
    def __bytes__(self):
        return b"cd"
def f():
    return bytes(Packet())
