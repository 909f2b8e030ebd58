TEXT = """
  a
"""
def f():
    return TEXT
