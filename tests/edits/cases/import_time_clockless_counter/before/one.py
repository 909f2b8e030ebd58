import state
state.N += 1
