import state
state.MODE = 1
