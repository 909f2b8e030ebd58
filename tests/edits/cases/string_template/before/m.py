import string
class T(string.Template):
    delimiter = "$"
def f():
    return T("$a").safe_substitute(a=1)
