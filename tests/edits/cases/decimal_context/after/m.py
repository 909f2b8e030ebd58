import decimal
decimal.getcontext().prec = 8
def f():
    return str(decimal.Decimal(1) / 3)
