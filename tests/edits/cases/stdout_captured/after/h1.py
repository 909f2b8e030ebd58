def h():
    print('two')
