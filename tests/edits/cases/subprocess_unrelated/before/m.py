import os
HERE = os.path.dirname(os.path.abspath(__file__))

import subprocess
import sys
def f():
    return subprocess.run([sys.executable, os.path.join(HERE, "tool.py")], capture_output=True, text=True).stdout
