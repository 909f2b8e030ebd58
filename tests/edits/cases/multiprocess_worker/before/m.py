import multiprocessing
def work(x):
    return x * 2
def f():
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.map(work, [1, 2])
