import json
class Enc(json.JSONEncoder):
    x = 1
    def default(self, o):
        return sorted(o)
def f():
    try:
        return json.dumps({1j: 1, 'a': {1}}, cls=Enc, skipkeys=True)
    except TypeError:
        return None
