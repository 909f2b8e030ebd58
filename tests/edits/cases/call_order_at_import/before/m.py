STEPS = []
STEPS.append("a")
STEPS.append("b")
def f():
    return STEPS
