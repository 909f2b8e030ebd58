import os
def f():
    return {name: value for name, value in os.environ.items() if name.startswith("ZZAPP_")}
