import decimal
decimal.getcontext().prec = 5
def f():
    return str(decimal.Decimal(1) / 3)
