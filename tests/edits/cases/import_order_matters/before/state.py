MODE = None
