import signal
FOUND = []
def caught(number, frame):
    FOUND.append(2)
def f():
    before = signal.signal(signal.SIGUSR1, caught)
    signal.raise_signal(signal.SIGUSR1)
    signal.signal(signal.SIGUSR1, before)
    return FOUND
