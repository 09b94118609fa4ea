"""A Spark Connect client on a server of its own: the probe of `make compatibility`, in this environment."""

import json
import sys

import pytest

from tests.paths import ROOT
from tests.programs import finished, for_spark

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

# both whatever else the machine does; the query of trigger-overrun never waits, so that only the client's command says
# what its trigger is
RULES = ("query-failed", "trigger-overrun")
GROUPS = ("query_info", "watermark_lag_seconds", "state_rows", "executor_tasks_total", "skew_ratio")
FAMILIES = tuple(f"ledgerops_{name}" for name in GROUPS)


def test_a_connect_client_sees_groups_of_metrics_and_knows_the_trigger(tmp_path):
    command = [sys.executable, ROOT / "load/compatibility/probe.py", "connect", *RULES, *FAMILIES]
    done = finished(*command, timeout=500, cwd=tmp_path, env=for_spark(PYTHONPATH=str(ROOT)))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])

    assert found.get("reason") is None
    assert set(found["rules"]) >= set(RULES)
    assert set(found["families"]) >= set(FAMILIES)
