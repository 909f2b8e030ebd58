import config
config.MODE = 'faster'
