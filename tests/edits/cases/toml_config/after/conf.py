import tomllib
from pathlib import Path
def load(name):
    with open(Path(__file__).parent / name, "rb") as stream:
        return tomllib.load(stream)
