from concurrent.futures import ProcessPoolExecutor
from work import work
def f():
    with ProcessPoolExecutor(1) as pool:
        return list(pool.map(work, [1, 2]))
