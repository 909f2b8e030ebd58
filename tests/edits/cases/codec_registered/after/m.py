import csv
import dialects
def f():
    return next(csv.reader(["a;b|c"], "ours"))
