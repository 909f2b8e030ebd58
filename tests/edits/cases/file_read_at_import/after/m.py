from vocab import WORDS
def f():
    return len(WORDS)
