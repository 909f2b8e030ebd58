import os
def f():
    fd = os.open(os.path.join(os.path.dirname(__file__), "data.txt"), os.O_RDONLY)
    try:
        return os.read(fd, 10)
    finally:
        os.close(fd)
