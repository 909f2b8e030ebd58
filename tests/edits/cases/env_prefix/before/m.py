import os
def f():
    return sorted(k for k in os.environ if k.startswith("ZZAPP_"))
