from unittest import mock
import h1
def five():
    return 5
def f():
    with mock.patch.object(h1, "limit", five):
        return h1.twice()
