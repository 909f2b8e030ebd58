from collections import defaultdict
def empty():
    return 6
FOUND = defaultdict(empty)
def f():
    return FOUND['x']
