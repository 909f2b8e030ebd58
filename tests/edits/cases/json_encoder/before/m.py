import json
class Encoder(json.JSONEncoder):
    def default(self, x):
        return sorted(x, reverse=False)
def f():
    return json.dumps({1, 2}, cls=Encoder)
