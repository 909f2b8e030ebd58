import os
HERE = os.path.dirname(os.path.abspath(__file__))

import sqlite3
def f():
    return sqlite3.connect(os.path.join(HERE, "data.db")).execute("SELECT v FROM t").fetchall()
