import pytest

from ledgerops.diagnosis.rules.state_snapshot_lag import RULE
from tests.tables import cases


def uploaded(count: int, *, until: int | None = None, every: int = 10) -> list[dict]:
    """A snapshot each `every` batches, up to the version `until`; 0 = never."""
    newest = [n - n % every if until is None else min(n - n % every, until) for n in range(count)]
    names = ("partition_0_default", "partition_1_default")
    return [
        {"rows": 1000, "snapshot_versions": dict(zip(names, (n, version or -1), strict=True))}
        for n, version in enumerate(newest)
    ]


def test_snapshots_that_stopped_are_found(history):
    [finding] = RULE.check(history(warm=0, operators=uploaded(140, until=20)))

    assert finding.summary == (
        "no snapshot of the state of stateStoreSave was uploaded for 120 batches and 4 min (partition_1_default): "
        "a restart must replay every change since"
    )


SET, LOGS = "set spark.sql.streaming.stateStore.", "search the executors' logs"


@cases(
    "settings, step",
    ("time", {"maintenanceInterval": "3600s"}, f"{SET}maintenanceInterval back to 60s at the next start; it is 3600s"),
    ("changes", {"minDeltasForSnapshot": "500"}, f"{SET}minDeltasForSnapshot back to 10 at the next start; it is 500"),
    ("they are not set", {}, LOGS),
    ("as they usually are", {"maintenanceInterval": "60000", "minDeltasForSnapshot": "10"}, LOGS),
    ("in another unit", {"maintenanceInterval": "1m"}, LOGS),
)
def test_the_setting_that_delays_them_is_named(history, settings, step):
    [finding] = RULE.check(history(warm=0, operators=uploaded(140, until=20), plan={"state_settings": settings}))
    assert finding.remedies[0].action.startswith(step)


def test_a_store_that_never_had_one_is_found(history):
    [finding] = RULE.check(history(warm=0, operators=uploaded(100, until=0)))
    assert [each.value for each in finding.evidence] == [100.0, pytest.approx(199, abs=1)]


@cases(
    "operators, more",
    ("a snapshot every ten", uploaded(140), {}),
    ("maintenance once a minute, its upload in the next", uploaded(140, every=75), {}),
    ("a young query", uploaded(80, until=0), {}),
    ("many batches in a few seconds", uploaded(190, until=20), {"interval": 0.1, "seconds": [0.1] * 190}),
    ("a long trigger: few batches to replay", uploaded(40, until=0), {"interval": 60.0}),
)
def test_others_are_not(history, operators, more):
    assert list(RULE.check(history(warm=0, operators=operators, **more))) == []
