def tool(x: int):
    return x
