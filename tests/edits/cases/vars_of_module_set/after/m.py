import config
import setup
def f():
    return config.MODE
