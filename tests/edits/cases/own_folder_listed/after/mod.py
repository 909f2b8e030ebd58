def unused():
    return 2
