import state
def f():
    return state.SEEN
