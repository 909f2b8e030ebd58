def f():
    return json.dumps(1)
import json
