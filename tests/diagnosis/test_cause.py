"""The one check of all causes of time: what a cause takes of a batch beyond the usual, and when that is told."""

from dataclasses import replace

import pytest

from ledgerops.diagnosis.cause import Cause, Told, check, ruled_out
from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.diagnosis.facts.context import ANY, fitting
from ledgerops.model.finding import Component, Remedy
from tests.diagnosis.conftest import START, stage
from tests.tables import cases

CAUSE = Cause(
    slug="slow-disk",
    runbook="Slow disk: it is slow.",
    parts=("wal_commit", "commit_offsets"),
    happened="{seconds} of a batch of {batch} pass on the disk",
    tell=lambda view, found: Told(Component("query", view.query), (Remedy("look at the disk", "it is slow"),)),
)
QUICK = {"add_batch": 0.8, "wal_commit": 0.05, "commit_offsets": 0.05}
SLOW = {"add_batch": 0.9, "wal_commit": 1.5, "commit_offsets": 1.5}
WAS = {"add_batch": 0.1, "wal_commit": 0.8, "commit_offsets": 0.1}
BRIEF, AS_EVER = {"add_batch": 0.1, "wal_commit": 0.4}, {"wal_commit": 0.8, "commit_offsets": 0.2}
TASKS = [stage(seconds=[0.4, 0.4], began=0.3)]
WAITS = replace(CAUSE, slug="waits", parts=("wal_commit",), grown=("after_tasks",), born=("query_planning",))
PLANS, LATE = {"query_planning": 2.0, "add_batch": 1.9}, [stage(seconds=[0.4, 0.4], began=3.4)]
SMALL = SLOW | {"wal_commit": 0.6, "commit_offsets": 0.7}
DRIVER = {"add_batch": 3.8, "wal_commit": 0.01}


def grown(history, now=SLOW, before=QUICK, took=4.0, count=8, **more):
    """14 batches of 1 s as `before`, then `count` of `took` seconds as `now`."""
    told = {"seconds": [1] * 14 + [took] * count, "phases": [before] * 14 + [now] * count, "stages": TASKS}
    return history(warm=0, **told | more)


def born(history, now=SLOW, took=4.0, count=12, **more):
    return history(warm=0, seconds=[took] * count, phases=now, **more)


def test_what_grew_is_told_against_the_usual_with_its_batches_and_those_it_is_compared_with(history):
    [finding] = check(CAUSE, grown(history))

    assert finding.summary == "3.0 s of a batch of 4.0 s pass on the disk; usually 0.10 s"
    assert (finding.saving_seconds, finding.share) == pytest.approx((2.9, 2.9 / 4))
    assert [(each.name, round(each.value, 2), each.expected) for each in finding.evidence] == [
        ("wal_commit_seconds", 1.5, "about 0.05"),
        ("commit_offsets_seconds", 1.5, "about 0.05"),
        ("profile_seconds", 4.0, "the usual 1.0"),
    ]
    assert (finding.batches, finding.usual_batches) == ((17, 18, 19, 20, 21), (5, 6, 7, 8, 9))
    assert finding.began == pytest.approx(START + 0.1 + 14 * 2 + 3 * 4)  # of batch 17


def test_what_was_there_from_birth_counts_whole(history):
    [finding] = check(CAUSE, born(history))
    assert finding.summary == "3.0 s of a batch of 4.0 s pass on the disk"
    assert finding.saving_seconds == pytest.approx(3.0)
    assert finding.evidence[-1].expected == "all parts together"


@cases(
    "make",
    ("no batch yet", lambda history: history(warm=0)),
    ("one batch so far, and not a very long one", lambda history: born(history, count=1)),
    ("batches are in time and pause", lambda history: born(history, {"wal_commit": 0.6}, 1.2)),
    ("nothing to read", lambda history: born(history, idle=True)),
    ("it ends by itself", lambda history: born(history, plan={"trigger": "available_now"})),
    ("a fifth", lambda history: grown(history, SLOW | {"wal_commit": 0.4, "commit_offsets": 0.5})),
    ("less than half a second", lambda history: born(history, BRIEF, 0.6, 60, interval=0.5)),
    ("it always took as long: something else grew", lambda history: grown(history, SLOW | AS_EVER, WAS, 3.0)),
    ("from birth", lambda history: born(history, SLOW | {"wal_commit": 1.2, "commit_offsets": 0.0})),
)
def test_what_is_small_or_usual_or_does_no_harm_is_not_told(history, make):
    assert list(check(CAUSE, make(history))) == []


def test_its_time_now_counts_beyond_its_time_before(history):
    """Of two parts that take as long the one that grew is named."""
    [finding] = check(CAUSE, grown(history, SLOW | {"commit_offsets": 0.1}, WAS, 2.5))
    assert finding.saving_seconds == pytest.approx(0.7)
    assert finding.summary.endswith("; usually 0.90 s")


@cases(
    "case, severities",
    ("batches outlast their interval", {"interval": 2.0}, ["warning"]),
    ("they run back to back and always did", {"interval": 0.0}, ["info"]),
    ("a small part, back to back", {"interval": 0.0, "now": SMALL}, []),
)
def test_without_harm_it_is_only_worth_knowing_where_it_is_large(history, case, severities):
    verdict = Diagnoser([CAUSE.rule()])(born(history, **case))
    assert [root.severity for root in verdict.root_causes] == severities
    assert list(check(CAUSE, grown(history, SMALL))), "of a harmed query's batch a small part is"


LITTLE = {"add_batch": 1.8, "wal_commit": 0.3, "commit_offsets": 0.3}
LATER = LITTLE | {"add_batch": 2.4}


@cases(
    "make, case, told",
    ("from birth, and the query would be in time", born, {"now": LITTLE, "took": 2.4}, True),
    ("from birth, and it would still be late", born, {"now": LATER, "took": 3.0}, False),
    ("it grew, and the query would be in time", grown, {"now": LITTLE | {"add_batch": 1.9}, "took": 2.5}, True),
    ("it grew, and it would still be late", grown, {"now": LATER, "took": 3.0}, False),
    ("nothing is owed", born, {"now": LITTLE, "took": 2.4, "interval": 0.0}, False),
)
def test_a_small_part_is_told_where_it_is_all_that_makes_a_query_late(history, make, case, told):
    assert bool(list(check(CAUSE, make(history, count=20, **case)))) == told


@cases(
    "make, seconds",
    ("it grew", lambda history: grown(history, DRIVER), [3.0]),
    ("whose it is, nobody knows", lambda history: born(history, DRIVER, stages=TASKS), []),
    ("it does not grow by itself", lambda history: born(history, {"query_planning": 2.0}), [2.0]),
    ("and if it grew, something did", lambda history: grown(history, PLANS, stages=[TASKS] * 14 + [LATE] * 8), []),
)
def test_some_parts_count_only_with_a_past_and_some_only_without(history, make, seconds):
    assert [round(each.saving_seconds or 0.0, 1) for each in check(WAITS, make(history))] == seconds


def test_a_cause_may_ask_for_more_and_for_its_context(history):
    view = grown(history)
    assert list(check(replace(CAUSE, min_share=0.7), view))
    assert list(check(replace(CAUSE, min_share=0.8), view)) == []
    assert list(check(replace(CAUSE, tell=lambda view, found: None), view)) == []


@cases(
    "commits, stays",
    ("a little below", 1.2, True),
    ("clearly below", 0.7, False),
)
def test_a_named_cause_stays_until_it_takes_clearly_less(history, commits, stays):
    """A fault whose share of a batch varies around the limit is one incident."""
    judge = Diagnoser([replace(replace(CAUSE, min_share=0.7).rule(), linger=0.0)])
    assert judge(grown(history)).root_causes

    found = judge(grown(history, SLOW | {"commit_offsets": commits})).root_causes

    assert bool(found) == stays


STEPS = {
    ANY: Remedy("any", "."),
    "sink kafka": Remedy("broker", "."),
    "source files": Remedy("folder", "."),
    "source kafka": Remedy("topic", "."),
}


@cases(
    "case, first",
    ("nothing special", {}, "any"),
    ("the sink", {"plan": {"sink": "KafkaTable"}}, "broker"),
    ("the source", {"source": "FileStreamSource[file:/in]"}, "folder"),
    ("another source", {"source": "KafkaV2[Subscribe[a]]"}, "topic"),
)
def test_the_first_step_fits_what_is_read_and_written(history, case, first):
    assert fitting(STEPS, born(history, **case)).action == first


def test_it_is_surer_with_a_larger_share_a_past_and_more_batches(history):
    def sure(view):
        [finding] = check(CAUSE, view)
        return finding.confidence

    much, less = SLOW, SLOW | {"wal_commit": 0.3}
    long = {"add_batch": 2, "wal_commit": 22}
    assert sure(born(history, less)) < sure(born(history, much)) < sure(grown(history, much)) <= 0.95
    assert sure(born(history, long, 24.0, 2)) < sure(born(history, long, 24.0, 4))


@cases(
    "cause, case, because",
    ("its number", CAUSE, {"now": QUICK}, "0.10 s of 4.0 s (2%)"),
    ("it takes too much to be ruled out", CAUSE, {}, None),
    ("a large number rules nothing out", replace(CAUSE, tell=lambda view, found: None), {}, None),
    ("not measured", CAUSE, {"now": {"add_batch": 4}}, None),
    ("no batch yet", CAUSE, {"count": 0}, None),
    ("tasks were not read", replace(CAUSE, parts=("wal_commit", "gc")), {"now": QUICK}, None),
    ("a part that needs tasks counts, too", replace(CAUSE, born=("gc",)), {"now": QUICK}, None),
)
def test_it_is_ruled_out_by_a_number_that_was_there(history, cause, case, because):
    assert ruled_out(cause, born(history, **case)) == because


@cases(
    "make, more, because",
    ("what may be of it is nearly all of a batch", born, {"perhaps": ("waiting",)}, None),
    ("so does what counts only beyond a usual", born, {"grown": ("waiting",)}, None),
    ("which a past tells", grown, {"perhaps": ("waiting",)}, "0.10 s of 4.0 s (2%); usually 0.10 s"),
    ("it is of others", born, {}, "0.10 s of 4.0 s (2%)"),
)
def test_it_is_not_ruled_out_without_a_past_beside_what_may_be_of_it(history, make, more, because):
    waits = [stage(seconds=[3.5, 3.5], cpu=0.0, shuffle=False)]
    phases = QUICK | {"add_batch": 3.8}
    case = {"before": QUICK} if make is grown else {}
    assert ruled_out(replace(CAUSE, **more), make(history, phases, stages=waits, **case)) == because


def more_rows(history, rows, usual, phases, before, now):
    """14 batches of 1.5 s with 1,000 rows, then eight of 3.5 s with so many; tasks computed for `before`, and `now`."""
    ran = [[stage(seconds=[seconds] * 2, cpu=1.0)] for seconds in [before] * 14 + [now] * 8]
    told = {"seconds": [1.5] * 14 + [3.5] * 8, "phases": [usual] * 14 + [phases] * 8}
    return history(warm=0, rows=[1000] * 14 + [rows] * 8, stages=ran, **told)


def test_what_more_rows_would_have_excused_in_one_part_is_no_credit_for_another(history):
    """Twice the rows may take twice as long; what needs no longer leaves nothing that another part may take."""
    view = more_rows(
        history, 2000, {"latest_offset": 0.1, "add_batch": 1.4}, {"latest_offset": 2.0, "add_batch": 1.5}, 1.3, 1.3
    )
    [finding] = check(replace(CAUSE, parts=("latest_offset", "cpu")), view)
    assert finding.saving_seconds == pytest.approx(1.9, abs=0.05)


@cases(
    "before, because",
    ("what has grown, though rows have grown as much", 0.4, None),
    ("but what is nearly as large as ever", 1.3, "1.6 s of 3.5 s (46%); usually 1.3 s"),
)
def test_what_has_grown_to_a_large_part_of_a_batch_is_not_ruled_out(history, before, because):
    usual = {"latest_offset": 0.1, "query_planning": 1.4 - before, "add_batch": before}
    now = {"latest_offset": 1.8, "query_planning": 0.1, "add_batch": 1.6}
    view = more_rows(history, 4000, usual, now, before, 1.6)
    assert ruled_out(replace(CAUSE, parts=("cpu",)), view) == because
