COMMANDS = []
def command(fn):
    COMMANDS.append(fn)
    return fn
