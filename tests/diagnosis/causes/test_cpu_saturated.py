from ledgerops.diagnosis.cause import check
from ledgerops.diagnosis.causes.cpu_saturated import CAUSE
from ledgerops.diagnosis.engine import Diagnoser
from tests.diagnosis.conftest import stage, told_by
from tests.diagnosis.rules.crowd import looked_at
from tests.diagnosis.test_contention import pressed, slowed
from tests.tables import cases

ADDS = {"add_batch": 4.6, "query_planning": 0.15}
ASKS = {"add_batch": 1.6, "latest_offset": 3.2, "query_planning": 0.15}
SLEEPS = {
    "count": 8, "now": {"add_batch": 4.6, "query_planning": 0.2}, "waits": stage("udf", seconds=[4.4, 4.3], cpu=0.0),
    "python": 8.5,
}  # fmt: skip
# from its first batch on, where planning takes three times what it takes on a free machine
BORN = SLEEPS | {
    "past": 0,
    "count": 20,
    "now": {"add_batch": 3.7, "query_planning": 0.8, "wal_commit": 0.2, "commit_offsets": 0.2},
}
ASLEEP = BORN | {"waits": stage("udf", seconds=[3.5, 0.1], records=[950, 50], cpu=0.01), "python": 3.5}
WHALE = stage(seconds=[4.4, 0.2], records=[950, 50])


def test_what_the_other_processes_cost_a_batch_is_told_and_is_the_root(history):
    [root] = Diagnoser()(looked_at(slowed(history, count=20), driver_jvm=0.5)).root_causes

    assert root.rule == "cpu-saturated"
    assert root.summary.startswith("other processes use 1.5 of 2 cores, 100% are busy: that takes ")
    assert root.saving_seconds is not None and 3.0 < root.saving_seconds <= 4.0
    assert (root.component.kind, root.component.detail) == ("host", "other processes")
    assert {"cpu_busy_ratio", "stretch_by_other_processes"} <= set(told_by(root))
    assert root.remedies[0].command == "top -o %CPU"


@cases("rows", ("as many rows", 1000), ("more, which are no reason to divide them", [1000] * 14 + [6000] * 20))
def test_a_cpu_limit_that_is_used_up_is_to_be_raised_by_what_it_holds_back(history, rows):
    view = slowed(history, count=20, rows=rows)
    [root, *_] = Diagnoser()(looked_at(view, busy=0.05, cpus=64, driver_jvm=0.5, limit=0.5, held_back=1.4)).root_causes

    assert (root.rule, root.component.detail) == ("cpu-saturated", "CPU limit")
    assert root.remedies[0].action == "raise the CPU limit of the driver's container to 2 cores, or remove it"
    assert {"cpu_limit_seconds", "stretch_by_cpu_limit", "cores_held_back"} <= set(told_by(root))


@cases(
    "case, machine, first",
    ("the application itself uses the cores", {}, {"driver_jvm": 1.9}, None),
    ("a broker that answers slowly", {"now": ASKS}, {"driver_jvm": 0.5}, "slow-source"),
    ("one task that has most of the rows", {"now": ADDS, "waits": WHALE}, {"driver_jvm": 0.5}, "key-skew"),
    ("a slow sink", {"now": ADDS, "waits": stage(seconds=[0.3, 0.2])}, {"driver_jvm": 0.5}, "slow-sink"),
    ("a function that sleeps: planning is as quick as ever", SLEEPS, {"driver_jvm": 0.1}, None),
    ("one that sleeps from birth", BORN, {"driver_jvm": 0.1, "python_workers": 0.02}, "python-bound"),
    ("one that sleeps for most rows", ASLEEP, {"driver_jvm": 0.1, "python_workers": 0.02}, "key-skew"),
)
def test_other_faults_on_a_busy_machine_are_not(history, case, machine, first):
    view = looked_at(slowed(history, **{"count": 20} | case), **machine)
    assert list(check(CAUSE, view)) == []
    assert first is None or Diagnoser()(view).root_causes[0].rule == first


def test_a_function_that_computes_on_starved_cores_from_birth_is_not_to_blame(history):
    view = looked_at(slowed(history, **BORN), driver_jvm=0.1, python_workers=0.5)
    assert Diagnoser()(view).root_causes[0].rule == "cpu-saturated"


def test_a_batch_that_hangs_on_a_busy_machine_comes_first(history):
    """Busy cores explain a share of the batches before it, however sure and large that is."""
    view = pressed(looked_at(slowed(history, count=20, running=133.0), driver_jvm=0.3), cpu_pressure_ratio=0.97)
    verdict = Diagnoser()(view)
    assert [root.rule for root in verdict.root_causes] == ["query-stuck", "cpu-saturated"]
    assert verdict.status == "stuck"
