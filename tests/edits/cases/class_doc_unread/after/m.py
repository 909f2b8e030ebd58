class A:
    """Some thing."""
    def go(self):
        """Go on."""
        return 1
def f():
    return A().go()
