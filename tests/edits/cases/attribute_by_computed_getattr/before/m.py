class Box:
    def do_a(self):
        return 1
def f():
    return [hasattr(Box, 'do_' + name) for name in 'ab']
