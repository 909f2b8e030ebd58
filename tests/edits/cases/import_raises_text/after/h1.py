raise ValueError('two')
