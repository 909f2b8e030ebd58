import logging
logging.getLogger("app").setLevel(logging.ERROR)
