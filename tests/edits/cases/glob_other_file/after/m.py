from pathlib import Path
def f():
    return sorted(p.name for p in (Path(__file__).parent / "data").glob("*.txt"))
