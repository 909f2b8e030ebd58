class Entry:
    def __call__(self):
        return 1
f = Entry()
