N = 1
if __name__ == "__main__":
    N = 3
