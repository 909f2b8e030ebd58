from state import STATE
STATE.mode = 'fast'
