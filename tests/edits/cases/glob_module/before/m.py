import glob
import os
def f():
    return len(glob.glob(os.path.join(os.path.dirname(__file__), "data", "**", "*.txt"), recursive=True))
