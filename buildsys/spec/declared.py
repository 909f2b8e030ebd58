"""All that a project's rule files say together, as one record. Knows nothing of how they are written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from buildsys.model import NO_LIMITS, Keeping, Limits, Prices, Rule, RuleName, Service
from buildsys.request import AS_WRITTEN, Variation


@dataclass(frozen=True)
class Declared:
    """All rule files together, with values from the configs as `variation` has them.

    prices: None where none are declared. pools: name -> size.
    """

    rules: Mapping[RuleName, Rule]
    services: Mapping[str, Service]
    keeping: Keeping = field(default_factory=Keeping)
    prices: Prices | None = None
    pools: Mapping[str, int] = field(default_factory=dict)
    variation: Variation = AS_WRITTEN
    limits: Limits = NO_LIMITS
