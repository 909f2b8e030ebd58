TYPE_CHECKING = True
N = 1
if TYPE_CHECKING:
    N = 2
def f():
    return N
