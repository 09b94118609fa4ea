"""docs/verdict.md says which part of a batch belongs to which cause, as the code has it."""

import re

from ledgerops.diagnosis.batch_parts import DESCRIBED, PARTS
from ledgerops.diagnosis.causes import CAUSES
from tests.paths import ROOT

ROWS = re.findall(r"^\| (`[a-z_`, ]+`) \| ([^|]+) \| ([^|]+) \|$", (ROOT / "docs/verdict.md").read_text("utf-8"), re.M)
CONDITIONS = {"parts": "", "grown": " (beyond the usual)", "born": " (without a past)"}


def test_the_table_has_each_part_once_with_the_causes_that_own_it():
    told = {part: owners for parts, _, owners in ROWS for part in re.findall(r"`(\w+)`", parts) if part in PARTS}
    owned = {
        part: ", ".join(
            f"`{cause.slug}`{condition}"
            for cause in CAUSES
            for which, condition in CONDITIONS.items()
            if part in getattr(cause, which)
        )
        for part in PARTS
    }

    assert told == {part: owners or "none" for part, owners in owned.items()}


def test_each_part_is_described_in_one_sentence():
    assert set(DESCRIBED) == set(PARTS) and not any("\n" in each or each.endswith(".") for each in DESCRIBED.values())


def test_no_two_causes_own_a_part_at_the_same_time():
    for has_past in (True, False):
        owned = [part for cause in CAUSES for part in (*cause.parts, *(cause.grown if has_past else cause.born))]
        assert len(owned) == len(set(owned))
