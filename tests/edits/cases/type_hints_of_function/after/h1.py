def tool(x: str):
    return x
