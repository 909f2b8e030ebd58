def tool(a, b=2):
    return a
