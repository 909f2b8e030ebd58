import state
state.MODE = 2
