class Base:
    def go(self):
        """Two."""
