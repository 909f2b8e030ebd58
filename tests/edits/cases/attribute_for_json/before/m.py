import json
class Enc(json.JSONEncoder):
    x = 1
def f():
    try:
        return json.dumps({1j: 1, 'a': {1}}, cls=Enc, skipkeys=True)
    except TypeError:
        return None
