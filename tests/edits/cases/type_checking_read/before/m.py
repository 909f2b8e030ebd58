TYPE_CHECKING = False
N = 1
if TYPE_CHECKING:
    N = 2
def f():
    return N
