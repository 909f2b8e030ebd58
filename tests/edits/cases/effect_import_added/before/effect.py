import state
state.SEEN.append("x")
