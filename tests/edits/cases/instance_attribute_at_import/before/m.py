import setup
from state import STATE
def f():
    return STATE.mode
