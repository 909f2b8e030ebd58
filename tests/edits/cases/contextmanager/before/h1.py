from contextlib import contextmanager
@contextmanager
def opened(log):
    log.append("in")
    yield log
    log.append("out")
