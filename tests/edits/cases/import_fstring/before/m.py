import importlib
KIND = 'one'
def f():
    return importlib.import_module(f'parts.{KIND}').X
