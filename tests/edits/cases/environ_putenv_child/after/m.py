import os
import subprocess
import sys
os.environ["ZZ_CHILD"] = "2"
def f():
    done = subprocess.run([sys.executable, "-c", "import os; print(os.environ['ZZ_CHILD'])"], capture_output=True, text=True)
    return done.stdout
