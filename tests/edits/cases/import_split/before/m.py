import json, os.path
def f():
    return json.dumps(os.path.basename("a/b"))
