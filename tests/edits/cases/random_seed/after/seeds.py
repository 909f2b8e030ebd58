import random
random.seed(2)
