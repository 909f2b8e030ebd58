A = 1
DEBUG = True

