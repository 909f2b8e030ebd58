import sys
def h():
    return 1
def main(argv):
    print(argv, h())
if __name__ == "__main__":
    main(sys.argv)
