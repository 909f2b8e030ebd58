from h1 import *
