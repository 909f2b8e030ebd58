def page():
    '''<i>{}</i>'''
def f():
    return page.__doc__.format(1)
