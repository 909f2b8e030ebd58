"""Which names a rule file may give. Knows nothing of the tables that they stand in.

Names become keywords of Python functions; those of rules become views of SQL as well.
"""

from __future__ import annotations

import keyword
import re
from typing import Final

PUBLIC_VIEWS: Final = (
    "runs",
    "actions",
    "artifacts",
    "edges",
    "files",
    "symbols",
    "code_deps",
    "params",
    "settings",
    "versions",
    "checks",
    "requests",
    "metrics",
)
"""The manifest's own views; a rule of such a name would hide one."""

SQL_WORDS: Final = frozenset(
    "all analyse analyze and anti any array as asc asof asymmetric at authorization binary both by case cast check"
    " collate collation column concurrently constraint create cross default deferrable desc describe distinct do"
    " else end except false fetch for foreign freeze from full glob group having ilike in initially inner intersect"
    " into is isnull join lambda lateral leading left like limit natural not notnull null offset on only or order"
    " outer overlaps pivot pivot_longer pivot_wider placing positional primary qualify references returning right"
    " select semi show similar some summarize symmetric table tablesample then to trailing true union unique unpack"
    " unpivot using variadic verbose when where window with".split()
)
"""The words that DuckDB takes for no table unless they are quoted."""


def why_no_name(name: str) -> str:
    """Why a name can't be a keyword of a Python function, as the end of a sentence; "" where it can."""
    return "is a word of Python" if keyword.iskeyword(name) else ""


def why_no_rule(name: str) -> str:
    """Why a rule can't have this name; "" where it can."""
    if name.lower() in PUBLIC_VIEWS:
        return "is a view of the manifest"
    return why_no_name(name) or ("is a word of SQL" if name.lower() in SQL_WORDS else "")


def role_for(path: str) -> str:
    """What an input may be called that is this file: its own name without the suffix, as a word."""
    name = path.rpartition("/")[2]
    dot = name.rfind(".")
    stem = name[:dot] if 0 < dot < len(name) - 1 else name
    return re.sub(r"\W|^(?=\d)", "_", stem) or "input"
