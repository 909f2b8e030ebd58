"""The tables that hold for a whole project, `[store]`, `[price]`, `[limits]`, `[pools]`: each in at most one rule file.

Knows what they say and nothing of what is done with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from buildsys.errors import BuildError
from buildsys.model import Keeping, Limits, Prices
from buildsys.spec.declared import Declared
from buildsys.spec.sizes import bytes_of
from buildsys.spec.tables import FileTable, StoreTable
from buildsys.spec.toml_text import TomlText

_PRICE_IT: Final = "say what requests cost, for example: [price] output_token = 2.5e-06"


@dataclass(frozen=True)
class ProjectTables:
    """What all rule files say of the project. prices: None where none are declared. pools: name -> size."""

    keeping: Keeping
    prices: Prices | None
    limits: Limits
    pools: Mapping[str, int]


def project_tables(files: Iterable[tuple[TomlText, FileTable]]) -> ProjectTables:
    """The project's tables, from all rule files.

    Raises BuildError where two have the same one, and where a limit of cost has no price to go by.
    """
    files = list(files)
    store = _only("store", files)
    price = _only("price", files)
    limits = _only("limits", files)
    pools = _only("pools", files)
    prices = Prices(**_given(price[1].price)) if price else None
    allowed = Limits(**_given(limits[1].limits)) if limits else Limits()
    if limits and allowed.max_cost is not None and not _prices_requests(prices):
        raise limits[0].error(("limits", "max_cost"), "max_cost in [limits] has no price to go by", hint=_PRICE_IT)
    return ProjectTables(
        keeping=_keeping(store[1].store) if store else Keeping(),
        prices=prices,
        limits=allowed,
        pools=pools[1].pools if pools else {},
    )


def limited(declared: Declared, given: Limits) -> Declared:
    """The project with limits that were given for once, each instead of the declared one.

    Raises BuildError for one that is no amount, and for one of cost that has no price to go by.
    """
    asked = {name: most for name, most in vars(given).items() if most is not None}
    for name, most in asked.items():
        if not most >= 0:  # not a number is neither less nor more
            raise BuildError(f"{_flag(name)} has to be at least 0, not {most}")
    if "max_cost" in asked and not _prices_requests(declared.prices):
        raise BuildError(f"{_flag('max_cost')} has no price to go by", hint=_PRICE_IT)
    return replace(declared, limits=replace(declared.limits, **asked))


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _prices_requests(prices: Prices | None) -> bool:
    return prices is not None and any((prices.request, prices.input_token, prices.output_token))


def _given(table: msgspec.Struct) -> dict[str, Any]:
    """Its keys, without those that have no default and are not there."""
    return {key: value for key, value in msgspec.structs.asdict(table).items() if value is not msgspec.UNSET}


def _keeping(table: StoreTable) -> Keeping:
    budget = table.ephemeral_budget
    return Keeping(bytes_of(table.link_above), bytes_of(budget) if budget else None, table.keep_logs)


def _only(name: str, files: Iterable[tuple[TomlText, FileTable]]) -> tuple[TomlText, FileTable] | None:
    """The file that has the table, None where there is none."""
    having = [(toml, table) for toml, table in files if name in toml.tree]
    if len(having) > 1:
        (first, _), (second, _) = having[:2]
        raise BuildError(
            f"two rule files have [{name}]",
            facts=[("first", str(first.place(name))), ("second", str(second.place(name)))],
            hint="it holds for the whole project: put all of it into one of them",
        )
    return having[0] if having else None
