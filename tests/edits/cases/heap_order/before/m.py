import heapq
class Task:
    def __init__(self, name, rank):
        self.name, self.rank = name, rank
    def __lt__(self, other):
        return self.rank < other.rank
def f():
    heap = []
    for name, rank in (("a", 2), ("b", 1)):
        heapq.heappush(heap, Task(name, rank))
    return heapq.heappop(heap).name
