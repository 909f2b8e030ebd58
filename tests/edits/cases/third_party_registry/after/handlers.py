import tfw
@tfw.handler("double")
def double(x):
    return x * 3
