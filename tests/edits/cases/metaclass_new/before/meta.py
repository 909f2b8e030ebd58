class Meta(type):
    def __new__(mcs, name, bases, space):
        space["fields"] = [n for n in space if not n.startswith("_")]
        return super().__new__(mcs, name, bases, space)
