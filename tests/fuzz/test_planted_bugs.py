"""Bugs that are put into the engine on purpose are found within few graphs: so those that are not on purpose are."""

from __future__ import annotations

import pytest

from tests.fuzz.campaign import failure_of
from tests.fuzz.case import random_case
from tests.fuzz.planted import BUGS, Plant

_GRAPHS = 60


@pytest.mark.parametrize("plant", BUGS, ids=lambda plant: plant.__name__)
def test_a_planted_bug_is_found(plant: Plant) -> None:
    with plant():
        found = (failure_of(random_case(seed)) for seed in range(BUGS[plant], BUGS[plant] + _GRAPHS))
        assert any(error.startswith("Mismatch") for error in found)
