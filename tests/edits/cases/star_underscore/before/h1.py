h = int
