"""What this is."""
def f():
    return 1
