import logging
import logs
def f():
    return logging.getLogger("app").isEnabledFor(logging.INFO)
