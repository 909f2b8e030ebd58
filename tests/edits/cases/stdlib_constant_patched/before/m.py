import patch
import string
def f():
    return string.digits
