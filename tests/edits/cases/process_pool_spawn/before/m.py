import multiprocessing
from work import work
def f():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.map(work, [1, 2])
