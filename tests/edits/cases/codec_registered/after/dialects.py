import csv
csv.register_dialect("ours", delimiter="|")
