"""What the requests of one build have come to, and whether one more may be sent.

Knows nothing of servers, of the log, or of how often to try again. All but `reached` belongs to one event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from buildsys.events import LimitReached
from buildsys.model import NO_LIMITS, Limits, Prices
from buildsys.plan.limits import Amount, Limit, against
from buildsys.run.conversation import tokens_of
from buildsys.run.endpoint import Heard

_FREE = frozenset({"busy", "unreachable", "misconfigured"})
"""What it means where a server has surely done nothing for a request."""


class HeldBack(Exception):
    """A limit allows no further request."""


class Spending:
    """Counts what is sent. n_unmeasured: replies that did not say how many tokens they hold."""

    def __init__(self, limits: Limits = NO_LIMITS, prices: Prices | None = None) -> None:
        self._limits = limits
        self._prices = prices
        self._amount = Amount()
        self._n_replies = 0
        self._n_in_flight = 0
        self._most_in_flight = 0
        self._n_kept = 0
        self._left: set[str] = set()
        self._stopped_by: Limit | None = None
        self._settled = asyncio.Event()
        self.n_unmeasured = 0

    @property
    def counts_tokens(self) -> bool:
        """Whether a limit goes by what replies say of their tokens."""
        return self._limits.max_output_tokens is not None or self._limits.max_cost is not None

    def go_on(self) -> None:
        """Raises HeldBack where a limit holds back all requests by now."""
        if self._stopped_by:
            raise HeldBack

    def begin(self, most_tokens: int | None = None) -> bool:
        """Put one more request in flight; False where that has to wait for `settled`.

        most_tokens: that its answer may have; None where it may have any number.

        Raises HeldBack where a limit is reached, or would be passed with nothing in flight; from then on always.
        """
        self.go_on()
        reached = next((limit for limit in self._against(self._amount) if limit.is_reached), None)
        expected = self._expected(most_tokens or 0)
        passed = reached or next((limit for limit in self._against(expected) if limit.is_passed), None)
        if reached or (passed and not self._n_in_flight):
            self._stopped_by = passed
            raise HeldBack
        if passed:
            return False
        self._n_in_flight += 1
        self._most_in_flight += most_tokens or 0
        return True

    def end(self, heard: Heard | None, most_tokens: int | None = None) -> None:
        """One is no longer in flight. heard: None where nobody waited for the end of it. most_tokens: as it began."""
        self._n_in_flight -= 1
        self._most_in_flight -= most_tokens or 0
        if heard is None or heard.meaning not in _FREE:
            self._count(heard.content if heard else {})
            self._n_replies += heard is not None and heard.meaning == "reply"
        self._settled.set()
        self._settled = asyncio.Event()

    async def settled(self) -> None:
        """Wait until a request is no longer in flight."""
        await self._settled.wait()

    def keep(self) -> None:
        """A reply is in the log."""
        self._n_kept += 1

    def hold_back(self, keys: Iterable[str]) -> None:
        """Requests that are not sent in this build."""
        self._left.update(keys)

    def reached(self) -> LimitReached | None:
        """What is to be told of the limit that held requests back; None where none did."""
        limit = self._stopped_by
        if limit is None:
            return None
        return LimitReached(
            limit.name,
            limit.most,
            int(self._amount.requests),
            int(self._amount.output_tokens),
            self._amount.cost(self._prices) if self._prices else None,
            self._prices.currency if self._prices else "",
            self._n_kept,
            len(self._left),
        )

    def _count(self, content: Mapping[str, Any]) -> None:
        """content: of a reply, empty where there is none."""
        n_input, n_output = (tokens_of(content, name) for name in ("prompt_tokens", "completion_tokens"))
        self.n_unmeasured += bool(content) and min(n_input, n_output) < 0
        before = self._amount
        self._amount = Amount(
            before.requests + 1, before.input_tokens + max(0, n_input), before.output_tokens + max(0, n_output)
        )

    def _against(self, amount: Amount) -> Iterable[Limit]:
        return against(self._limits, self._prices, amount)

    def _expected(self, most_tokens: int) -> Amount:
        """What it comes to with one more, if all that are in flight are like those that were answered.

        Before any was, they give as many tokens as they may; but the first is sent to find out.
        """
        n_more, done = self._n_in_flight + 1, self._amount
        if not self._n_replies:
            most = self._most_in_flight + most_tokens if self._n_in_flight else 0
            return Amount(done.requests + n_more, done.input_tokens, done.output_tokens + most)
        share = n_more / self._n_replies
        return Amount(done.requests + n_more, done.input_tokens * (1 + share), done.output_tokens * (1 + share))
