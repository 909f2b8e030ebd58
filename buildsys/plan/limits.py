"""Whether requests stay within the limits of a build, and what is said where they do not: values in, values out.

Knows nothing of who sends requests, nor when.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from buildsys.errors import LIMIT, BuildError
from buildsys.events import LimitReached
from buildsys.model import Limits, Prices
from buildsys.phrases import counted, money, short
from buildsys.plan import price

_DECIMALS: Final = 12
"""Of a cost: three requests at 0.1 are 0.3, which they are not as numbers of the machine."""


class Amount(NamedTuple):
    """Requests, with the tokens of their prompts and replies; not whole where it is expected."""

    requests: float = 0.0
    input_tokens: float = 0.0
    output_tokens: float = 0.0

    def cost(self, prices: Prices | None) -> float:
        """What they cost, 0 without prices."""
        return round(price.of_requests(prices, *self), _DECIMALS) if prices else 0.0


@dataclass(frozen=True)
class Limit:
    """One limit, by its key in [limits], and what an amount comes to in what it is of."""

    name: str
    most: float
    amount: float

    @property
    def is_reached(self) -> bool:
        return self.amount >= self.most

    @property
    def is_passed(self) -> bool:
        return self.amount > self.most


def against(limits: Limits, prices: Prices | None, amount: Amount) -> Iterator[Limit]:
    """The amount as each of the limits that there are sees it."""
    if limits.max_requests is not None:
        yield Limit("max_requests", limits.max_requests, amount.requests)
    if limits.max_output_tokens is not None:
        yield Limit("max_output_tokens", limits.max_output_tokens, amount.output_tokens)
    if limits.max_cost is not None:
        yield Limit("max_cost", limits.max_cost, amount.cost(prices))


def amount_text(name: str, amount: float, currency: str) -> str:
    """An amount in what the limit is of: `10 requests`, `70 output tokens`, `0.43 USD`."""
    if name == "max_cost":
        return money(amount, currency)
    return counted(round(amount), "request" if name == "max_requests" else "output token")


def spent_text(limit: Limit, currency: str) -> str:
    """An amount against its limit: `312 of 1,000 requests`, `1.2M of 2M tokens`, `4.10 of 10 EUR`."""
    if limit.name == "max_cost":
        return f"{money(limit.amount, '')} of {limit.most:,.10g} {currency}".rstrip()
    noun = "requests" if limit.name == "max_requests" else "tokens"
    return f"{short(limit.amount)} of {short(limit.most)} {noun}"


def stopped(reached: LimitReached) -> BuildError:
    """The end of a build whose requests were held back, for people."""
    spent = [counted(reached.requests, "request"), counted(reached.output_tokens, "output token")]
    if reached.cost is not None:
        spent.append(money(reached.cost, reached.currency))
    came = {"max_output_tokens": reached.output_tokens, "max_cost": reached.cost or 0.0}.get(reached.limit, 0.0)
    limit = amount_text(reached.limit, reached.most, reached.currency)
    if Limit(reached.limit, reached.most, came).is_passed:
        limit += ", passed by what was in flight"
    return BuildError(
        f"{reached.limit} stopped the build",
        facts=[
            ("limit", limit),
            ("spent", ", ".join(spent)),
            ("kept", counted(reached.kept, "reply")),
            ("left to do", f"{counted(reached.left, 'request')}, as far as they are known"),
        ],
        hint=f"build again, for as much again, or raise {reached.limit}: what is kept is not asked for again",
        exit_code=LIMIT,
    )
