part = 5
