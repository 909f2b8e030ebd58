from collections import defaultdict
def empty():
    return 5
FOUND = defaultdict(empty)
def f():
    return FOUND['x']
