import sys
FOUND = []
def watch(frame, event, arg):
    if event == "call":
        FOUND.append(frame.f_code.co_name.upper())
def g():
    pass
def f():
    sys.setprofile(watch)
    g()
    sys.setprofile(None)
    return "g" in FOUND
