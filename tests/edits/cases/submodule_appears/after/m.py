def f():
    try:
        from pkg import fast
    except ImportError:
        return "slow"
    return fast.go()
