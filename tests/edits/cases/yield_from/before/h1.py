def part():
    yield 1
    return 9
