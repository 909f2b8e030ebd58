import registry
registry.KINDS["a"] = 1
