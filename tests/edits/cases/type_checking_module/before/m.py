from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from types_of import Row
def f(row: "Row" = None):
    return row
