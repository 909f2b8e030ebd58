import os
HERE = os.path.dirname(os.path.abspath(__file__))

import subprocess
def f():
    return subprocess.run("wc -c < data.txt", shell=True, cwd=HERE, capture_output=True, text=True).stdout.strip()
