import os
from concurrent.futures import ThreadPoolExecutor
def read(path):
    with open(path) as stream:
        return stream.read()
def f():
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(read, os.path.join(os.path.dirname(__file__), "data.txt")).result()
