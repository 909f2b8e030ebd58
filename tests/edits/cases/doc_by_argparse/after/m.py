"""Count all words."""
import argparse
def f():
    return argparse.ArgumentParser(prog="p", description=__doc__).format_help()
