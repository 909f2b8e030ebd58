import os
def f():
    return sorted(name for name in os.environ if name.startswith("ZZAPP_"))
