class A:
    """A thing."""
    def go(self):
        """Go."""
        return 1
def f():
    return A().go()
