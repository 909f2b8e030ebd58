"""What work costs."""

from __future__ import annotations

import pytest

from buildsys.model import Prices
from buildsys.phrases import money
from buildsys.plan import price

PRICES = Prices(
    request=0.5, input_token=0.01, output_token=0.1, action_hour=3.6, service_hour=36.0, gpu_hour=7.2, currency="EUR"
)


def test_an_action_costs_its_time_and_that_of_its_gpus():
    assert price.of_action(PRICES, 10.0, 0) == pytest.approx(0.01)
    assert price.of_action(PRICES, 10.0, 3) == pytest.approx(0.01 + 0.06)


def test_requests_cost_by_number_and_by_token():
    assert price.of_requests(PRICES, 2, 30, 4) == pytest.approx(1.0 + 0.3 + 0.4)
    assert price.of_service(PRICES, 100.0) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("amount", "told"),
    [
        (0.0, "0 EUR"),
        (1234.5, "1,234 EUR"),
        (3.2, "3.20 EUR"),
        (0.999, "1.00 EUR"),
        (0.994, "0.99 EUR"),
        (0.5, "0.5 EUR"),
        (0.001234, "0.0012 EUR"),
        (3e-7, "0.0000003 EUR"),
    ],
)
def test_money_is_told_with_the_digits_that_count(amount, told):
    assert money(amount, "EUR") == told


def test_a_currency_without_a_name_is_left_out():
    assert money(2.0, "") == "2.00"
