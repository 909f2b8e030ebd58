def h():
    print('one')
