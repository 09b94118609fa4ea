import pytest

from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.diagnosis.rules.rate_limited import RULE
from tests.diagnosis.conftest import stage, told_by
from tests.diagnosis.landing import every, reads
from tests.diagnosis.rules.retelling import beside_another, doubled
from tests.tables import cases

CAPPED = {"rate_limits": {"maxOffsetsPerTrigger": "1000"}}
FIVE = {"rate_limits": {"maxOffsetsPerTrigger": "5000"}}
GROWS = [3000 + 1000 * n for n in range(12)]
FIXED = {"query_planning": 0.25, "wal_commit": 0.08, "commit_offsets": 0.06}


def held(**changes):
    case = {"seconds": [0.5] * 12, "rows": 1000, "backlog": GROWS, "plan": CAPPED}
    return case | changes


def planned(planning):
    """Batches of 1.6 s, of which planning takes so much and tasks that compute take the rest."""
    work = [stage(seconds=[1.5 - planning] * 2, began=planning + 0.05)]
    phases = {"query_planning": planning, "add_batch": 1.6 - planning}
    return held(seconds=[1.6] * 12, phases=phases, stages=work)


@pytest.mark.parametrize("option", ["maxOffsetsPerTrigger", "maxRowsPerTrigger"])
def test_a_cap_that_holds_the_query_back_is_the_root_of_falling_behind(history, option):
    [root] = Diagnoser()(history(**held(plan={"rate_limits": {option: "1000"}}))).root_causes

    assert (root.rule, root.explains) == ("rate-limited", ("falling-behind",))
    assert root.summary == (
        f"each of the last 5 batches read the 1,000 offsets that {option} allows; at the median they took 0.50 s of 2 "
        "s, and 14,000 are left behind"
    )
    assert root.remedies[0].action == f"raise {option} to about 2,900 and start the query again"
    assert root.share == 0.5  # 2,000 come for each 1,000


@cases(
    "case",
    ("beside a single longer batch", held(seconds=[0.5] * 10 + [1.6, 0.5])),
    ("with a large backlog that would take hours", held(backlog=[9_000_000 - 10 * n for n in range(12)])),
    ("with little room, where the time does not go into rows", planned(1.2)),
)
def test_it_is_found(history, case):
    assert [each.component.detail for each in RULE.check(history(**case))] == ["maxOffsetsPerTrigger"]


@cases(
    "cap, read, found",
    ("rounded down in each", 5, (2, 2), True),
    ("less", 5, (2, 1), False),
    ("nothing, of a cap of one", 1, (0, 0), False),
)
def test_a_cap_is_used_up_by_what_spark_rounds_it_down_to_in_each_partition(history, cap, read, found):
    plan = {"rate_limits": {"maxOffsetsPerTrigger": str(cap)}}
    case = held(rows=sum(read), read=[read] * 12, backlog=GROWS, plan=plan)
    assert bool(list(RULE.check(history(**case)))) == found


@cases(
    "add_batch, stages",
    ("tasks take all of it", 0.55, [stage(records=[2, 3], seconds=[0.2, 0.2], began=0.3, wall=0.55)]),
    ("a commit after the tasks", 0.6, [stage(records=[2, 3], seconds=[0.2, 0.2], began=0.3, wall=0.3)]),
    ("tasks unknown", 0.6, None),
)
def test_a_small_cap_on_batches_that_run_back_to_back_is_the_first_cause_with_a_number(history, add_batch, stages):
    """Five rows in each batch of a second, because `maxOffsetsPerTrigger` allows no more, while fifty arrive."""
    view = history(
        warm=0, interval=0.0, seconds=[1.0] * 60, rows=5, backlog=[45 * n for n in range(1, 61)], cores=2,
        plan={"rate_limits": {"maxOffsetsPerTrigger": "5"}}, phases=FIXED | {"add_batch": add_batch}, stages=stages,
    )  # fmt: skip
    roots = Diagnoser()(view).root_causes

    assert roots[0].rule == "rate-limited"
    assert roots[0].remedies[0].action.startswith("raise maxOffsetsPerTrigger to about ")
    assert not {"input-overload", "cpu-saturated"} & {root.rule for root in roots}


@cases(
    "limits",
    ("an event log tells no option", {}),
    ("a cap that counts files", {"maxFilesPerTrigger": "1000"}),
    ("a cap on rows of a table", {"streaming-max-rows-per-micro-batch": "1000"}),
    ("a cap that is no number", {"maxOffsetsPerTrigger": "lots"}),
    ("a cap that nothing can count to", {"maxOffsetsPerTrigger": "9" * 5000}),
)
def test_a_cap_is_seen_from_batches_of_one_size_that_leave_rows_behind(history, limits):
    [finding] = RULE.check(history(**held(plan={"rate_limits": limits})))

    assert finding.component.detail == "the limit of the source"
    assert finding.remedies[0].action == (
        "raise the limit of the source (such as maxOffsetsPerTrigger) to about 2,900 and start the query again"
    )


@cases(
    "case",
    ("no cap is known, and batches are not of one size", held(plan={}, rows=[1000, 900] * 6)),
    ("no cap is known, and no room in the interval", held(plan={}, seconds=[1.9] * 12)),
    ("nothing is left behind", held(backlog=[0] * 12)),
    ("batches below the cap", held(rows=800)),
    ("no room in the interval", held(seconds=[1.9] * 12)),
    ("room, but not always", held(seconds=[0.5, 1.9, 1.9] * 4)),
    ("little room, and rows are what takes the time", planned(0.2)),
    ("back to back", held(interval=None, plan=CAPPED | {"trigger_interval": 0.0})),
    ("a backlog is worked off", held(rows=5000, backlog=[80_000 - 4000 * n for n in range(12)], plan=FIVE)),
    ("just started", {"warm": 0, **held(seconds=[0.5] * 3, backlog=GROWS[:3])}),
)
def test_others_are_not(history, case):
    assert list(RULE.check(history(**case))) == []


def slow_rows(arrive, seconds=5.0):
    """Batches of a thousand rows each ten seconds, of which all but a second is work on rows, while so many arrive."""
    work = [stage(seconds=[seconds - 1.0] * 2, began=0.6)]
    phases = {"query_planning": 0.6, "add_batch": seconds - 0.6}
    left = [(arrive - 1000) * n for n in range(1, 13)]
    return held(interval=10.0, seconds=[seconds] * 12, backlog=left, phases=phases, stages=work, cores=2)


def test_of_two_topics_each_has_a_cap_of_its_own(history):
    """Half of each interval is free, and 1,500 rows come to each topic in it."""
    view = doubled(history(**slow_rows(1500)))
    [root] = Diagnoser()(view).root_causes

    assert (root.rule, root.component.name) == ("rate-limited", "transactions")
    assert root.share == pytest.approx(1 / 3)
    told = told_by(root)
    assert (told["batch_offsets"], told["needed_offsets"]) == (1000, pytest.approx(150 * 10 / 0.7, rel=0.05))


def test_where_the_rows_of_both_topics_take_too_long_no_cap_of_them_helps(history):
    assert list(RULE.check(history(**slow_rows(1500))))
    assert list(RULE.check(doubled(history(**slow_rows(1500, seconds=6.5))))) == []


@pytest.mark.parametrize("heads", [True, False])
def test_what_comes_to_another_source_is_no_matter_of_the_cap(history, heads):
    [alone] = RULE.check(history(**held()))
    [finding] = RULE.check(beside_another(history(**held()), 10_000, heads))

    assert (finding.component, finding.share) == (alone.component, alone.share)
    assert told_by(finding) == told_by(alone)


def test_a_source_that_leaves_rows_below_the_cap_is_not_held_back_by_it_whatever_another_one_reads(history):
    assert list(RULE.check(beside_another(history(**held(rows=500)), 600))) == []


def test_a_cap_on_files_that_holds_the_query_back_is_the_root_of_falling_behind():
    verdict = Diagnoser()(reads(every(1.25)))

    [root] = verdict.root_causes
    assert (verdict.status, root.rule, root.explains) == ("falling_behind", "rate-limited", ("falling-behind",))
    assert (root.component.name, root.component.detail) == ("FileStreamSource", "maxFilesPerTrigger")
    assert root.summary == (
        "each of the last 8 batches read the 1 file that maxFilesPerTrigger allows; they took 0.40 s of 2 s at the "
        "median; files now wait 14 s, 5.2 s longer than before"
    )
    assert root.remedies[0].action == "raise maxFilesPerTrigger to about 3 and start the query again"
    [symptom] = [each for each in verdict.findings if each.rule == "falling-behind"]
    waits = {"ledgerops_source_file_age_seconds": 19 * 0.75, "file_age_growth_seconds": 7 * 0.75}
    assert told_by(symptom) == pytest.approx(waits)
    assert told_by(root) == pytest.approx(waits | {"batch_files": 1.0, "batch_seconds_median": 0.4})
    assert symptom.summary == (
        "files wait for longer and longer: over 8 batches the newest file that a batch read was first 9.0 s old, then "
        "14 s"
    )


@cases(
    "view",
    ("files wait, but not longer", lambda: reads(every(2.0, start=-60.0))),
    ("no room in the interval", lambda: reads(every(1.25), seconds=1.9)),
    ("back to back", lambda: reads(every(0.4, 200), seconds=1.0, interval=0.0, batches=40)),
    ("no cap", lambda: reads(every(1.25), option=None)),
)
def test_other_queries_that_read_files_are_not(view):
    assert list(RULE.check(view())) == []


@cases(
    "case, because",
    ("no cap", {}, None),
    ("not reached", held(rows=500), "batches read at most 500 of the 1,000 offsets that maxOffsetsPerTrigger allows"),
    ("it is reached", held(seconds=[1.9] * 12), None),
)
def test_a_cap_is_ruled_out_with_its_number(history, case, because):
    assert RULE.ruled_out(history(**case)) == because
