import argparse
def parser():
    p = argparse.ArgumentParser()
    p.add_argument("--n", type=int, default=1)
    return p
def f():
    return parser().parse_args([]).n
