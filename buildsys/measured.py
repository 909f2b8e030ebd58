"""The numbers in JSON outputs that are declared as metrics, as the manifest keeps them.

Reads bytes that no one changes any more (staged, or in the store), never the workspace. What can't be read is told and
fails nothing: the outputs are as good as they were, and may have cost days. Knows nothing of runs and profiles: equal
bytes hold equal numbers, whoever has them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

from buildsys.model import Made, Rule
from buildsys.state.rows import MetricsRow, Number

MOST_NUMBERS: Final = 100_000
"""Of one output; more are the data itself, and are better read from a table."""
MOST_ITEMS: Final = 100
"""Lists that are longer, and no curve, are data too."""
MOST_BYTES: Final = 64_000_000
_LARGEST_STEP: Final = 2**63


def measured(rule: Rule, found: Iterable[tuple[Made, Path]]) -> tuple[list[MetricsRow], list[str]]:
    """The metrics of those outputs that are declared as such, by their files; and a line for each that can't be read.

    What can't be read has a row without numbers, so that it is told once and not by every build.
    """
    rows, flaws = [], []
    for made, path in found:
        if made.name not in rule.metrics:
            continue
        numbers, flaw = read_numbers(path)
        rows.append(MetricsRow(rule.name, made.name, made.artifact.digest, numbers))
        if flaw:
            flaws.append(f"metrics in {made.artifact.path}: {flaw}")
    return rows, flaws


def read_numbers(path: Path) -> tuple[tuple[Number, ...], str]:
    """All numbers of a JSON file, in its order, and what is wrong with it, "" where nothing is."""
    if path.stat().st_size > MOST_BYTES:
        return (), f"it is larger than {MOST_BYTES // 1_000_000} MB, and is not read"
    try:
        document = json.loads(path.read_bytes())
        if not isinstance(document, dict | list):
            return (), "it holds no object and no list"
        numbers = tuple(islice(_numbers(document, "", None), MOST_NUMBERS + 1))
    except json.JSONDecodeError as error:
        return (), f"it is no JSON: {error.msg}, at line {error.lineno}, column {error.colno}"
    except (ValueError, RecursionError) as error:
        return (), f"it can't be read: {error}"
    if len(numbers) > MOST_NUMBERS:
        return numbers[:-1], f"it holds more than {MOST_NUMBERS:,} numbers; the first ones are kept"
    return numbers, ""


def _numbers(value: Any, name: str, step: int | None) -> Iterator[Number]:
    """Names of nested values are joined with dots; texts and nulls are no numbers."""
    match value:
        case bool() | int() | float():
            yield Number(name, step, _double(value))
        case dict():
            for key, inner in value.items():
                yield from _numbers(inner, f"{name}.{key}" if name else key, step)
        case list() if step is None and _is_curve(value):
            for point in value:
                rest = {key: inner for key, inner in point.items() if key != "step"}
                yield from _numbers(rest, name, point["step"])
        case list() if len(value) <= MOST_ITEMS:
            yield from _numbers({str(index): inner for index, inner in enumerate(value)}, name, step)


def _is_curve(value: list[Any]) -> bool:
    """A list of objects that say at which step each was measured."""
    return bool(value) and all(isinstance(point, dict) and _is_step(point.get("step")) for point in value)


def _is_step(value: object) -> bool:
    return type(value) is int and -_LARGEST_STEP <= value < _LARGEST_STEP


def _double(value: float) -> float:
    """NaN and the infinities stay what they are: a loss that diverged is no missing one."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
