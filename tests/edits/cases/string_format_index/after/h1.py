class A:
    name = 'b'
