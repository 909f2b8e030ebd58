import a
SIZE = a.BASE * 10
