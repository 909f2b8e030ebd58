import config
config.LEVEL = 2
