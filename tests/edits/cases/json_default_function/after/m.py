import json
import h1
def f():
    return json.dumps({1, 2}, default=h1.plain)
