"""A job must run where packages are missing: unobserved if need be, and with two of them observed."""

import json

import pytest

from tests.programs import python

NEEDED = ("orjson", "psutil")
MAX_BYTES = 25 * 1024 * 1024  # that attaching may add to a driver


def attached(*packages: str, blocked: str = "") -> dict:
    """What attaching came to in an interpreter that has only these packages, and lacks a module of ours."""
    done = python("-m", "tests.agent.light", ",".join(packages), *blocked.split())
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("missing", NEEDED)
def test_without_a_package_that_it_needs_the_job_runs_unobserved_and_the_reason_is_logged_once(missing):
    found = attached(*(set(NEEDED) - {missing}))

    reason = f"ModuleNotFoundError: No module named '{missing}'"
    assert found["error"] == found["again"] == reason
    assert found["logged"][0] == f"ledgerops cannot be loaded ({reason}); the job runs unobserved"
    assert sum("the job runs unobserved" in line for line in found["logged"]) == 1
    assert found["url"] is found["port"] is None
    assert found["queries"] == found["statuses"] == found["families"] == []


def test_without_a_package_instrumented_rows_pass_unobserved():
    found = attached(*NEEDED, blocked="ledgerops.metrics.latency")
    assert found["same"] is True
    assert sum("; rows pass unobserved" in line for line in found["logged"]) == 1


def test_orjson_and_psutil_are_enough_to_be_watched():
    found = attached(*NEEDED)

    assert found["error"] is None
    assert [line for line in found["logged"] if "set ui_url" not in line] == []
    assert found["queries"] == found["statuses"] == ["daily_counts"]
    assert 'ledgerops_batches_total{query="daily_counts"} 1.0' in found["/metrics"]
    for page in ("/diagnosis", "/status"):
        assert [query["query"] for query in json.loads(found[page])["queries"]] == ["daily_counts"]
    assert '"kind":"progress"' in found["/recording"]
    assert found["/"].lstrip().startswith("<!")


def test_attaching_is_small_and_loads_no_package_that_it_does_not_need():
    found = attached(*NEEDED, "numpy", "rich", "yaml", "zstandard", "grafana_foundation_sdk", "prometheus_client")
    foreign = {name for name in found["modules"] if not name.startswith("_")} - {"ledgerops", "pyspark", "tests"}
    assert foreign == set(NEEDED)
    assert found["bytes"] <= MAX_BYTES
