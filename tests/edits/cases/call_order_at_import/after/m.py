STEPS = []
STEPS.append("b")
STEPS.append("a")
def f():
    return STEPS
