from state import STATE
STATE.mode = 'faster'
