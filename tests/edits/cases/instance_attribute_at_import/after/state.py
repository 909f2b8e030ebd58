class State:
    mode = 'slow'
STATE = State()
