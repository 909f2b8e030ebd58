import argparse
def f():
    parser = argparse.ArgumentParser(prog="x")
    parser.add_argument("--n", help=TEXT)
    return parser.format_help()
TEXT = "how much"
