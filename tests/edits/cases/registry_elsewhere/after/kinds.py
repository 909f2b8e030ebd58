import registry
registry.KINDS["a"] = 2
