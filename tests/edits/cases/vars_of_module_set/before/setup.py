import config
vars(config)['MODE'] = 'fast'
