def slow():
    return "slow"

