"""Random projects under random edits: the outputs are those of a clean build, and what ran is what had to.

`python -m tests.fuzz --graphs 10000` plays more of them, `python -m tests.fuzz SEED` one of them again.
"""

from __future__ import annotations

import pytest

from tests.fuzz.campaign import play_seeds

_BATCHES = 4
_BATCH = 25


@pytest.mark.parametrize("batch", range(_BATCHES))
def test_after_any_edits_outputs_are_those_of_a_clean_build_and_no_more_ran_than_had_to(batch: int) -> None:
    tally = play_seeds(range(batch * _BATCH, (batch + 1) * _BATCH))
    assert not tally.failures, "\n".join(
        f"{error}\n  again: python -m tests.fuzz {seed}" for seed, error in tally.failures
    )
    assert tally.played.n_called > _BATCH
