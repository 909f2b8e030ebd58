from typing import Annotated, get_type_hints
class Row:
    n: Annotated[int, 1]
def f():
    return get_type_hints(Row, include_extras=True)["n"].__metadata__
