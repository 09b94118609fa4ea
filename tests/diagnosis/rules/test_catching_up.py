import pytest

from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.diagnosis.rules.catching_up import RULE
from ledgerops.model.history import Ended
from ledgerops.signals.query_view import QueryView
from tests.tables import cases

FALLS = [60_000 - 4000 * n for n in range(10)]


def restarted(**changes):
    return {"warm": 0, "seconds": [1.5] * 10, "rows": 5000, "backlog": FALLS} | changes


def test_a_backlog_that_is_worked_off_after_a_start_is_found(history):
    [finding] = RULE.check(history(**restarted()))

    assert finding.summary == "catching up: 24,000 of 60,000 offsets are left, 2,000 fewer per second; " + (
        "backlog clears in about 12 s"
    )


def test_it_says_that_the_query_had_failed_before(history):
    view = history(**restarted())
    view.history.ends.append(Ended(view.history.started_at - 31.0, "run-0", "boom", "SOME_CLASS"))
    [finding] = RULE.check(view)

    assert finding.summary.endswith(
        "backlog clears in about 12 s; the query was down for 31 s after a failure (SOME_CLASS)"
    )
    assert (finding.evidence[-1].name, finding.evidence[-1].value) == ("away_seconds", 31.0)


def test_a_planned_restart_is_told_as_one(history):
    view = history(**restarted())
    view.history.ends.append(Ended(view.history.started_at - 5.0, "run-0", None, None))
    assert next(RULE.check(view)).summary.endswith("; the query was down for 5.0 s")


def test_the_pace_is_that_since_twelve_batches_ago(history):
    lefts = [99_000, 90_000, 70_000, *(60_000 - 4000 * n for n in range(1, 13))]
    evidence = {
        each.name: each.value
        for each in next(RULE.check(history(**restarted(seconds=[1.5] * 15, backlog=lefts)))).evidence
    }

    assert evidence["backlog_falls_by"] == pytest.approx((70_000 - 12_000) / 24)


def test_nothing_worse_is_said_meanwhile(history):
    verdict = Diagnoser()(history(**restarted(seconds=[1.5] * 10)))
    assert (verdict.status, [root.rule for root in verdict.root_causes]) == ("catching_up", ["catching-up"])
    assert verdict.root_causes[0].severity == "info" and verdict.health >= 95


def test_batches_at_the_cap_that_outlast_the_interval_are_no_fault(history):
    view = history(**restarted(seconds=[5.0] * 14, backlog=[90_000 - 4000 * n for n in range(14)]))
    verdict = Diagnoser()(view)

    assert [root.rule for root in verdict.root_causes] == ["catching-up"]
    assert verdict.root_causes[0].severity == "info" and [each.rule for each in verdict.findings] == ["catching-up"]


@cases(
    "case",
    ("no backlog", restarted(backlog=[0] * 10)),
    ("it grows: falling behind", restarted(backlog=FALLS[::-1])),
    ("it stays", restarted(backlog=[60_000] * 10)),
    ("not in the last batch", restarted(backlog=[*FALLS[:9], FALLS[8] + 1])),
    ("too few batches", restarted(seconds=[1.5] * 3, backlog=FALLS[:3])),
    ("a burst in the middle of a run", {"seconds": [1.5] * 10, "rows": 5000, "backlog": FALLS}),
    (
        "the saw-tooth of a long trigger",
        restarted(interval=60.0, seconds=[5] * 6, rows=90_000, backlog=[60_000 - 10_000 * n for n in range(6)]),
    ),
    ("done and idle", restarted(idle=True, backlog=[*FALLS[:9], 0])),
)
def test_others_are_not(history, case):
    assert list(RULE.check(history(**case))) == []


def test_what_is_promised_of_a_query_at_work_is_not_promised_once_it_has_ended(history):
    view = history(**restarted())
    view.history.end(view.now, view.history.run_id, None, None)
    assert list(RULE.check(view)) == []


def test_nor_when_no_batch_follows(history):
    view = history(**restarted())
    assert list(RULE.check(QueryView(view.history, view.now + 4))) != []
    assert list(RULE.check(QueryView(view.history, view.now + 30))) == []
