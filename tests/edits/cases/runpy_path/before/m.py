import os
import runpy
def f():
    return runpy.run_path(os.path.join(os.path.dirname(__file__), "tool.py"))["N"]
