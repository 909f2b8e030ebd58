"""Other text."""
X = 1
