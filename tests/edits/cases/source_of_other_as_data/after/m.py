import hashlib
import h1
from pathlib import Path
def f():
    return hashlib.md5(Path(h1.__file__).read_bytes()).hexdigest()
