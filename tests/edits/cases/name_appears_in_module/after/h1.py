def slow():
    return "slow"
def fast():
    return "fast"

