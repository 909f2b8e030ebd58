class A:
    name = 'a'
