import re
def swap(found):
    return found.group().upper()
def f():
    return re.sub("[a-z]+", swap, "ab cd")
