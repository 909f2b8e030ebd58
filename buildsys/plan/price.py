"""What work costs, at the prices that a project declares. Knows nothing of where numbers of work come from.

The views of the manifest say the same in SQL (`state/views`), at the prices that each run had.
"""

from __future__ import annotations

from buildsys.model import Prices

_HOUR_S = 3600.0


def of_action(prices: Prices, seconds: float, gpus: int) -> float:
    """An action that ran for so long on so many GPUs; its requests come on top."""
    return seconds / _HOUR_S * (prices.action_hour + gpus * prices.gpu_hour)


def of_requests(prices: Prices, n_sent: float, input_tokens: float, output_tokens: float) -> float:
    """Requests that were sent, with their tokens; those that the log of replies answers cost nothing."""
    return n_sent * prices.request + input_tokens * prices.input_token + output_tokens * prices.output_token


def of_service(prices: Prices, seconds: float) -> float:
    """A server that was up for so long."""
    return seconds / _HOUR_S * prices.service_hour
