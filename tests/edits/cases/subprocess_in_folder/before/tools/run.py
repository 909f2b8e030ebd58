import part
print(part.X)
