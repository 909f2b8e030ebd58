import json
from pathlib import Path
CONF = json.loads((Path(__file__).parent / "conf.json").read_text())
def f():
    return CONF["n"]
