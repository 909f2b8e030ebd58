class Box:
    '''A box.'''
    def __init__(self, n):
        '''Of n.'''
        self.n = n
    def size(self):
        return self.n
def scale(n, by=2):
    return n * by
