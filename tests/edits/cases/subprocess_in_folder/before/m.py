import os
HERE = os.path.dirname(os.path.abspath(__file__))

import subprocess
import sys
def f():
    return subprocess.run([sys.executable, "run.py"], cwd=os.path.join(HERE, "tools"), capture_output=True, text=True).stdout
