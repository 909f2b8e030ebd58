import seeds
import random
def f():
    return random.random()
