import argparse
def add(a):
    return a.n + 1
def make():
    parser = argparse.ArgumentParser()
    one = parser.add_subparsers().add_parser("add")
    one.add_argument("n", type=int)
    one.set_defaults(go=add)
    return parser
def f():
    args = make().parse_args(["add", "2"])
    return args.go(args)
