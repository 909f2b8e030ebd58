import logging
class Keep(logging.Handler):
    def __init__(self):
        super().__init__()
        self.found = []
    def emit(self, record):
        self.found.append(self.format(record))
def f():
    keep = Keep()
    log = logging.getLogger("zz")
    log.addHandler(keep)
    log.warning("two %s", 1)
    return keep.found
