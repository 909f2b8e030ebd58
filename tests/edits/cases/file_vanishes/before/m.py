from pathlib import Path
def f():
    return Path(__file__).with_name("flag").exists()
