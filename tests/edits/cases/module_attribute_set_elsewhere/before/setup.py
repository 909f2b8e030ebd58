import config
config.MODE = 'fast'
