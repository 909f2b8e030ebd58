from collections import UserDict
class Lower(UserDict):
    def __setitem__(self, key, value):
        super().__setitem__(key.upper(), value)
def f():
    return dict(Lower({"Ab": 1}))
