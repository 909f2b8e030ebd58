from pathlib import Path
def f():
    return sorted(path.name for path in Path(__file__).with_name("data").rglob("*.txt"))
