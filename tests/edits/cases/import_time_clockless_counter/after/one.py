import state
state.N += 2
