from unittest import mock
import h1
def f():
    with mock.patch("h1.limit", return_value=5):
        return h1.twice()
