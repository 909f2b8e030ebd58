import state
import one
def f():
    return state.N
