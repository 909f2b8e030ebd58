"""The names of function definitions, which a trace is told in."""

from textwrap import dedent as text

from buildsys.code.functions import function_names


def test_functions_are_named_from_the_module_in_the_order_in_which_they_stand():
    source = text("""
        class C:
            def method(self):
                def inner(): ...
            async def other(self): ...
        if True:
            def last(): ...
    """)
    assert function_names(source) == ["C.method", "C.method.inner", "C.other", "last"]


def test_the_second_of_a_name_is_told_apart():
    source = text("""
        class C:
            @property
            def x(self): ...
            @x.setter
            def x(self, value): ...
    """)
    assert function_names(source) == ["C.x", "C.x#2"]


def test_what_is_not_python_has_none():
    assert function_names("def broken(") == []
