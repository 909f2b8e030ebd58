import configparser
import os
def f():
    c = configparser.ConfigParser()
    c.read(os.path.join(os.path.dirname(__file__), "app.ini"))
    return c.get("a", "n", fallback="1")
