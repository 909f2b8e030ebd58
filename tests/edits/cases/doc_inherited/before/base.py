class Base:
    def go(self):
        """One."""
