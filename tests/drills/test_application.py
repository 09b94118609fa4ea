"""How the application of a drill is started: with its own settings, and none of the machine's."""

import shlex

import pytest

from ledgerops.drills.catalogue import BY_NAME
from ledgerops.drills.drawn.draw import case_of
from ledgerops.drills.harness.application import APP, _environment

PLAIN = case_of("python-udf", seed=1, number=1)


def started(injector, case):
    """The variables of the application, and its settings for Spark."""
    environ = _environment(case, injector)
    words = shlex.split(environ["PYSPARK_SUBMIT_ARGS"])
    return environ, dict(word.split("=", 1) for word in words if "=" in word)


@pytest.mark.parametrize("case", [BY_NAME["slow-sink"], PLAIN], ids=["scripted", "plain"])
def test_settings_of_the_machine_do_not_reach_it(injector, tmp_path, monkeypatch, case):
    monkeypatch.setenv("LEDGEROPS_PORT", "9464")
    monkeypatch.setenv("LEDGEROPS_APP", "mine")
    monkeypatch.setenv("SPARK_CONF_DIR", "/etc/spark")

    environ, conf = started(injector, case)

    assert (environ["LEDGEROPS_PORT"], environ["LEDGEROPS_RECORDING"]) == ("0", str(tmp_path / "recording"))
    assert {"LEDGEROPS_APP", "SPARK_CONF_DIR", "LEDGEROPS_KAFKA_SERVERS"}.isdisjoint(environ)
    assert environ["OUTSIDE"] == str(tmp_path / "outside.json")
    assert conf["spark.sql.streaming.minBatchesToRetain"] == "2000"


def test_a_plain_application_writes_an_event_log_and_a_scripted_one_the_settings_of_the_ledger(injector, tmp_path):
    _, plain = started(injector, PLAIN)
    environ, scripted = started(injector, BY_NAME["slow-sink"])

    assert plain["spark.eventLog.dir"] == f"file://{tmp_path / 'eventlog'}"
    assert (tmp_path / "eventlog").is_dir()
    assert "spark.eventLog.enabled" not in scripted
    assert plain["spark.sql.streaming.metricsEnabled"] == plain["spark.ui.prometheus.enabled"] == "true"
    assert scripted["spark.sql.streaming.metricsEnabled"] == "false"
    assert (int(plain["spark.ui.port"]) > 1024, scripted["spark.ui.port"]) == (True, "0")
    assert "RocksDB" in scripted["spark.sql.streaming.stateStore.providerClass"]
    assert (scripted["spark.app.name"], environ["LEDGEROPS_HOST_INTERVAL"]) == (APP, "2")


def test_a_drill_replaces_settings_and_may_add_what_is_known_only_when_it_runs(injector, tmp_path):
    drill = BY_NAME["slow-state-commit"]
    drill.prepare(injector)
    args = _environment(drill, injector)["PYSPARK_SUBMIT_ARGS"]

    assert "changelogCheckpointing.enabled=false" in args
    assert f"spark.hadoop.fs.slow.control={tmp_path / 'files' / 'control'}" in args
