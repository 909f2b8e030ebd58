import declare
import store
declare.declare("a", "b")
def f():
    return store.ITEMS
