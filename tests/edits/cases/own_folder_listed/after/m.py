import os
import tempfile
import mod
def f():
    with tempfile.TemporaryDirectory() as folder:
        open(os.path.join(folder, "x"), "w").close()
        return os.listdir(folder)
