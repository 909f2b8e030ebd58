import builtins
builtins.len = None
