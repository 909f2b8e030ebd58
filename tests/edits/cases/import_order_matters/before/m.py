import one
import two
import state
def f():
    return state.MODE
