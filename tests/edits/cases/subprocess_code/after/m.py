import os
HERE = os.path.dirname(os.path.abspath(__file__))

import subprocess
import sys
def f():
    return subprocess.run([sys.executable, "-c", "import h1; print(h1.LIMIT)"], cwd=HERE, capture_output=True, text=True).stdout
