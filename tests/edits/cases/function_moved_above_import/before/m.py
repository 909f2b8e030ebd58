import json
def f():
    return json.dumps(1)
