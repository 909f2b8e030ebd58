import os
HERE = os.path.dirname(os.path.abspath(__file__))

import json
def f():
    with open(os.path.join(HERE, "a.json")) as stream:
        return json.load(stream)["n"]
