# two
