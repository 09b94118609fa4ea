"""The saved recordings of all drills: every number of every finding can be recomputed from the recording."""

from __future__ import annotations

import pytest

from ledgerops.drills import BY_NAME
from tests.drills.saved import NAMES, recording, verdicts
from tests.evidence.numbers import wrong_numbers


@pytest.mark.parametrize("name", NAMES)
def test_every_number_of_every_finding_is_in_the_recording(name):
    assert wrong_numbers(recording(name), verdicts(name)) == () or BY_NAME[name].limit
