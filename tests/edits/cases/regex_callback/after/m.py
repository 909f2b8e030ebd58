import re
def swap(found):
    return found.group().title()
def f():
    return re.sub("[a-z]+", swap, "ab cd")
