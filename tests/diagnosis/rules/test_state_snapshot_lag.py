import pytest

from ledgerops.diagnosis.rules.state_snapshot_lag import RULE
from tests.tables import cases


def uploaded(count: int, *, until: int | None = None, every: int = 10) -> list[dict]:
    """A snapshot each `every` batches, up to the version `until`; 0 = never."""
    found = []
    for n in range(count):
        version = n - n % every
        version = version if until is None else min(version, until)
        found.append(
            {"rows": 1000, "snapshot_versions": {"partition_0_default": n, "partition_1_default": version or -1}}
        )
    return found


def test_snapshots_that_stopped_are_found(history):
    [finding] = RULE.check(history(warm=0, seconds=[1] * 140, operators=uploaded(140, until=20)))

    assert finding.summary == (
        "no snapshot of the state of stateStoreSave was uploaded for 120 batches and 4 min (partition_1_default): "
        "a restart must replay every change since"
    )


@cases(
    "settings, first",
    (
        "the interval",
        {"maintenanceInterval": "3600s", "minDeltasForSnapshot": "10"},
        "set spark.sql.streaming.stateStore.maintenanceInterval back to 60s at the next start; it is 3600s",
    ),
    (
        "the changes between two",
        {"maintenanceInterval": "60000", "minDeltasForSnapshot": "500"},
        "set spark.sql.streaming.stateStore.minDeltasForSnapshot back to 10 at the next start; it is 500",
    ),
)
def test_the_setting_that_delays_them_is_named(history, settings, first):
    [finding] = RULE.check(
        history(warm=0, seconds=[1] * 140, operators=uploaded(140, until=20), plan={"state_settings": settings})
    )

    assert [step.action for step in finding.remedies] == [first]


@pytest.mark.parametrize("settings", [None, {}, {"maintenanceInterval": "1m", "minDeltasForSnapshot": "10"}])
def test_settings_as_they_usually_are_leave_the_log_to_tell(history, settings):
    [finding] = RULE.check(
        history(warm=0, seconds=[1] * 140, operators=uploaded(140, until=20), plan={"state_settings": settings})
    )

    assert finding.remedies[0].action.startswith("search the executors' logs")


def test_a_store_that_never_had_one_is_found(history):
    [finding] = RULE.check(history(warm=0, seconds=[1] * 100, operators=uploaded(100, until=0)))
    assert [each.value for each in finding.evidence] == [100.0, pytest.approx(199, abs=1)]


@cases(
    "case",
    ("no state", {"warm": 0, "seconds": [1] * 140}),
    ("a snapshot every ten", {"warm": 0, "seconds": [1] * 140, "operators": uploaded(140)}),
    (
        "maintenance once a minute, its upload in the next",
        {"warm": 0, "seconds": [1] * 140, "operators": uploaded(140, every=75)},
    ),
    ("a young query", {"warm": 0, "seconds": [1] * 80, "operators": uploaded(80, until=0)}),
    (
        "many batches in a few seconds",
        {"warm": 0, "interval": 0.1, "seconds": [0.1] * 190, "operators": uploaded(190, until=20)},
    ),
    (
        "a long trigger: few batches to replay",
        {"warm": 0, "interval": 60.0, "seconds": [1] * 40, "operators": uploaded(40, until=0)},
    ),
)
def test_others_are_not(history, case):
    assert list(RULE.check(history(**case))) == []
