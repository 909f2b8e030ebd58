class Pairs:
    def __iter__(self):
        return iter([("a", 1)])
    def __getitem__(self, key):
        return 2
    def keys(self):
        return ['a']
def f():
    return dict(Pairs())
