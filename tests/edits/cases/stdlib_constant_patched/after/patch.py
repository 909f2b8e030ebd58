import string
string.digits = "01"

