import argparse
def add(a):
    return a.n + 1
def sub(a):
    return a.n - 2
def make():
    parser = argparse.ArgumentParser()
    kinds = parser.add_subparsers()
    one = kinds.add_parser("add")
    one.add_argument("n", type=int)
    one.set_defaults(go=add)
    two = kinds.add_parser("sub")
    two.add_argument("n", type=int)
    two.set_defaults(go=sub)
    return parser
def f():
    args = make().parse_args(["add", "2"])
    return args.go(args)
