from decimal import Decimal
def f():
    return Decimal('0.1')
