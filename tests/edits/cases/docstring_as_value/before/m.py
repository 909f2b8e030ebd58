def page():
    '''<b>{}</b>'''
def f():
    return page.__doc__.format(1)
