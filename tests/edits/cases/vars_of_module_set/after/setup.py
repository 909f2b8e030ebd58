import config
vars(config)['MODE'] = 'faster'
