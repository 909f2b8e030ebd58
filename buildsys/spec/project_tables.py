"""The tables that hold for a whole project, `[store]`, `[price]` and `[pools]`: each stands in at most one rule file.

Knows what they say and nothing of what is done with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import msgspec

from buildsys.errors import BuildError
from buildsys.model import Keeping, Prices
from buildsys.spec.sizes import bytes_of
from buildsys.spec.tables import FileTable, StoreTable
from buildsys.spec.toml_text import TomlText


@dataclass(frozen=True)
class ProjectTables:
    """What all rule files say of the project. prices: None where none are declared. pools: name -> size."""

    keeping: Keeping
    prices: Prices | None
    pools: Mapping[str, int]


def project_tables(files: Iterable[tuple[TomlText, FileTable]]) -> ProjectTables:
    """The project's tables, from all rule files. Raises BuildError where two have the same one."""
    files = list(files)
    store = _only("store", files)
    price = _only("price", files)
    pools = _only("pools", files)
    return ProjectTables(
        keeping=_keeping(store.store) if store else Keeping(),
        prices=Prices(**msgspec.structs.asdict(price.price)) if price else None,
        pools=pools.pools if pools else {},
    )


def _keeping(table: StoreTable) -> Keeping:
    budget = table.ephemeral_budget
    return Keeping(bytes_of(table.link_above), bytes_of(budget) if budget else None, table.keep_logs)


def _only(name: str, files: Iterable[tuple[TomlText, FileTable]]) -> FileTable | None:
    """The file that has the table, None where there is none."""
    having = [(toml, table) for toml, table in files if name in toml.tree]
    if len(having) > 1:
        (first, _), (second, _) = having[:2]
        raise BuildError(
            f"two rule files have [{name}]",
            facts=[("first", str(first.place(name))), ("second", str(second.place(name)))],
            hint="it holds for the whole project: put all of it into one of them",
        )
    return having[0][1] if having else None
