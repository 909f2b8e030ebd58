_h = int
