N = 3
import json
def f():
    return json.dumps(N)
