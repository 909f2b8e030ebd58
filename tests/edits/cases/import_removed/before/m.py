import state
import effect
def f():
    return state.SEEN
