import two
import one
import state
def f():
    return state.MODE
