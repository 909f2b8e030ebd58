def part():
    yield 2
    return 9
