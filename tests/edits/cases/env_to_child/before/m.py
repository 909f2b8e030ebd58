import os
import subprocess
import sys
def f():
    code = "import os; print(os.environ.get('ZZ_C'))"
    return subprocess.run([sys.executable, "-c", code], env=dict(os.environ), capture_output=True, text=True).stdout
