import importlib
from pathlib import Path
def f():
    names = sorted(path.stem for path in Path(__file__).with_name("plugins").glob("p*.py"))
    return [importlib.import_module("plugins." + name).X for name in names]
