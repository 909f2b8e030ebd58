import sys
print(open(sys.argv[1].partition('=')[2]).read())
