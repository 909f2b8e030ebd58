import state
state.MODE = "slow"
