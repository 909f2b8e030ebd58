def tool(a, b=1):
    return a
