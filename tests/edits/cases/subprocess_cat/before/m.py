import os
HERE = os.path.dirname(os.path.abspath(__file__))

import subprocess
def f():
    return subprocess.run(["cat", os.path.join(HERE, "data.txt")], capture_output=True, text=True).stdout
