"""Text."""
X = 1
