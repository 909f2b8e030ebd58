import string

