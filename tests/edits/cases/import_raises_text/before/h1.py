raise ValueError('one')
