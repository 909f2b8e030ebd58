import builtins
builtins.ascii = lambda x: 1
