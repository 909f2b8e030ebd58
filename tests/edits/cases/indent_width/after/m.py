def f(x=1):
  if x:
     return 1
  return 2
