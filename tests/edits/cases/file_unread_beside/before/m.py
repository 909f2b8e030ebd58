from pathlib import Path
def f():
    return (Path(__file__).parent / "data" / "a.txt").read_text()
