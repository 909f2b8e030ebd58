def tool():
    return 41
def f():
    return tool.__code__.co_consts
