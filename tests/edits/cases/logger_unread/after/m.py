import logging
LOG = logging.getLogger(__name__)
def on_error(x):
    LOG.error('it failed: %s', x)
def f():
    return 1
