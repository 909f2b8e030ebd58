class Loud:
    def say(self):
        return 'HI'
