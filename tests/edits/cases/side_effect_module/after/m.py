import setup_mode
import state
def f():
    return state.MODE
