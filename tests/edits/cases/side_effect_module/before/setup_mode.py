import state
state.MODE = "fast"
