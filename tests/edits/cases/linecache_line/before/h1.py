# one
