x: str = 1
