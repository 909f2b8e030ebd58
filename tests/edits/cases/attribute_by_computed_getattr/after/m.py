class Box:
    def do_a(self):
        return 1
    def do_b(self):
        return 2
def f():
    return [hasattr(Box, 'do_' + name) for name in 'ab']
