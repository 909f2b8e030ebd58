def ready():
    return False
