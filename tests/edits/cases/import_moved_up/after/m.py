import json
N = 3
def f():
    return json.dumps(N)
