import pytest

from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.diagnosis.rules.catching_up import RULE
from ledgerops.model.history import Ended
from tests.diagnosis.conftest import told_by
from tests.tables import cases

SAW_TOOTH = {"interval": 60.0, "seconds": [5] * 6, "rows": 90_000, "backlog": [60_000 - 10_000 * n for n in range(6)]}
FALLS = [60_000 - 4000 * n for n in range(10)]


def restarted(**changes):
    return {"warm": 0, "seconds": [1.5] * 10, "rows": 5000, "backlog": FALLS} | changes


SHRINKS = "catching up: 24,000 of 60,000 offsets are left, 2,000 fewer per second; backlog clears in about 12 s"


@cases(
    "away, exception, said",
    ("a first start", None, None, ""),
    ("it had failed", 31.0, "boom", "; the query was down for 31 s after a failure (SOME_CLASS)"),
    ("a planned restart", 5.0, None, "; the query was down for 5.0 s"),
)
def test_a_backlog_that_is_worked_off_after_a_start_is_found(history, away, exception, said):
    view = history(**restarted())
    if away is not None:
        ended = Ended(view.history.started_at - away, "run-0", exception, exception and "SOME_CLASS")
        view.history.ends.append(ended)
    [finding] = RULE.check(view)

    assert finding.summary == SHRINKS + said
    assert told_by(finding).get("away_seconds") == away


def test_the_pace_is_that_since_twelve_batches_ago(history):
    lefts = [99_000, 90_000, 70_000, *(60_000 - 4000 * n for n in range(1, 13))]
    [finding] = RULE.check(history(**restarted(seconds=[1.5] * 15, backlog=lefts)))
    assert told_by(finding)["backlog_falls_by"] == pytest.approx((70_000 - 12_000) / 24)


@cases(
    "case",
    ("in time", {}),
    ("at the cap", {"seconds": [5.0] * 14, "backlog": [90_000 - 4000 * n for n in range(14)]}),
)
def test_nothing_worse_is_said_meanwhile(history, case):
    verdict = Diagnoser()(history(**restarted(**case)))
    assert (verdict.status, [root.rule for root in verdict.root_causes]) == ("catching_up", ["catching-up"])
    assert [(each.rule, each.severity) for each in verdict.findings] == [("catching-up", "info")]
    assert verdict.health >= 95


@cases(
    "case",
    ("it grows: falling behind", restarted(backlog=FALLS[::-1])),
    ("it stays", restarted(backlog=[60_000] * 10)),
    ("not in the last batch", restarted(backlog=[*FALLS[:9], FALLS[8] + 1])),
    ("too few batches", restarted(seconds=[1.5] * 3, backlog=FALLS[:3])),
    ("a burst in the middle of a run", {"seconds": [1.5] * 10, "rows": 5000, "backlog": FALLS}),
    ("the saw-tooth of a long trigger", restarted(**SAW_TOOTH)),
    ("done and idle", restarted(idle=True, backlog=[*FALLS[:9], 0])),
)
def test_others_are_not(history, case):
    assert list(RULE.check(history(**case))) == []


def test_nothing_is_promised_of_a_query_that_has_ended_or_has_no_more_batches(history):
    view = history(**restarted())
    assert [bool(list(RULE.check(view.at(view.now + seconds)))) for seconds in (4, 30)] == [True, False]

    view.history.end(view.now, view.history.run_id, None, None)
    assert list(RULE.check(view)) == []
