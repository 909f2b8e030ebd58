from sink import Sink
def f():
    return hasattr(Sink(), "flush")
