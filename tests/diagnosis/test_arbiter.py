"""The cause whose saving ends the harm, or is a third of a batch, stands in place of what is left without one."""

import pytest

from ledgerops.diagnosis.arbiter import arbitrate
from ledgerops.diagnosis.causes import CAUSES
from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.diagnosis.harm import Harm
from ledgerops.model.finding import Component, Finding
from tests.diagnosis.conftest import stage
from tests.tables import cases

CAUSE_SLUGS = {cause.slug for cause in CAUSES}


def found(rule, share=None):
    saving = 10.0 * share if share is not None and rule in CAUSE_SLUGS else None
    return Finding("", Component("query", "q"), (), rule=rule, share=share, saving_seconds=saving)


def standing(ratio, *findings):
    kept, left_out = arbitrate(findings, Harm("behind", ratio, 0.0) if ratio else None)
    return [each.rule for each in kept], left_out


OVERLOAD = found("input-overload", 0.1)


@cases(
    "ratio, share, so",
    ("it ends a small harm", 1.2, 0.2, "without that the query would keep up"),
    ("it is a third of a batch", 5.0, 0.4, "that is worth removing first"),
)
def test_a_cause_that_saves_enough_stands_in_place_of_the_load(ratio, share, so):
    rules, left_out = standing(ratio, OVERLOAD, found("slow-sink", share))
    assert rules == ["slow-sink"]
    assert left_out["input-overload"] == f"slow-sink takes {10 * share:.1f} s of a batch, and {so}"


@cases(
    "ratio, share",
    ("the query could not keep up without it either", 2.0, 0.2),
    ("within the noise of a few batches", 1.06, 0.05),
)
def test_a_small_saving_leaves_the_load_the_cause(ratio, share):
    kept, _ = arbitrate([OVERLOAD, found("slow-sink", share)], Harm("behind", ratio, 0.0))
    assert [(each.rule, each.share) for each in kept] == [("input-overload", 1 - share), ("slow-sink", share)]


def test_what_saves_no_time_of_a_batch_does_not_rule_the_load_out():
    assert standing(2.0, OVERLOAD, found("rate-limited", 0.9))[0] == ["input-overload", "rate-limited"]


def test_that_batches_are_long_is_said_only_where_nothing_else_is():
    assert standing(None, found("long-batches"), found("late-data"))[0] == ["late-data"]
    assert standing(None, found("long-batches"))[0] == ["long-batches"]


def test_the_saving_is_a_number_of_the_verdict(history):
    waits = [stage(seconds=[0.1, 0.1], wall=0.1)]
    view = history(seconds=[5.0] * 8, phases={"add_batch": 4.9}, stages=waits, warm_stages=waits)
    [root] = Diagnoser()(view).root_causes

    assert root.rule == "slow-sink"
    assert root.share is not None
    assert root.saving_seconds == pytest.approx(5.0 * root.share)
    assert 3.0 < root.saving_seconds <= 5.0
