"""Loads that were sent to Kafka, judged by manifest and recording."""

from __future__ import annotations

import json

import pytest

from ledgerops.cli import main
from ledgerops.errors import UserError
from ledgerops.ledger.plan.manifest import Manifest
from ledgerops.ledger.plan.plan import parse_plan
from ledgerops.ledger.plan.summary import Summary
from ledgerops.load.test import plans
from ledgerops.load.test.external_load import read_sent_load, trial_of
from ledgerops.load.test.trial import TrialRequest
from tests.load.generator.test_latency_samples import SAMPLE
from tests.load.test.simulated import ORIGIN, System

PLAN = plans.at_rate(12_000, 2.0)
SECONDS = 80.0
RECORDS = PLAN.schedule.due(SECONDS)


def manifest(folder, **changes):
    given = {
        "source": "plan",
        "plan": "steady",
        "digest": PLAN.digest,
        "table": "transactions",
        "topic": "transactions",
        "records": RECORDS,
        "summary": Summary(),
        "seed": 7,
        "origin": ORIGIN,
        "text": PLAN.text,
        "sent": {"valid": True},
        **changes,
    }
    file = folder / "manifest.json"
    Manifest(**given).write(file)
    return file


def recording(folder, system=None):
    wanted = TrialRequest(("daily_counts",), PLAN, 20.0, SECONDS - 20.0, 2.0)
    return (system or System(noise=0.0)).perform(wanted, folder / "ran", lambda what, share: None).recording


def test_due_times_are_the_manifests(tmp_path):
    trial = trial_of(read_sent_load(manifest(tmp_path)), recording(tmp_path), tmp_path / "t", (), 20.0)
    found = trial.measured()["daily_counts"]
    embedded = System(noise=0.0).measured(PLAN, SECONDS - 20.0)
    assert found.latency.at(0.99) == pytest.approx(embedded.latency.at(0.99), abs=0.05)
    assert found.trigger == 2.0
    assert found.end - found.begin == pytest.approx(60.0, abs=0.1)


def test_what_a_topic_held_before_is_not_of_this_load(tmp_path):
    used = System(noise=0.0, base=1_000_000)
    trial = trial_of(
        read_sent_load(manifest(tmp_path)), recording(tmp_path, used), tmp_path / "t", ("daily_counts",), 20.0
    )
    assert trial.measured()["daily_counts"].latency.at(0.99) == pytest.approx(3.2, abs=0.1)


def test_poison_has_offsets_and_is_no_row(tmp_path):
    good = round(RECORDS / 1.02)
    file = manifest(tmp_path, records=good, poison={"invalid_json": RECORDS - good}, origin=ORIGIN)
    trial = trial_of(read_sent_load(file), recording(tmp_path), tmp_path / "t", (), 20.0)
    assert trial.measured()["daily_counts"].done[-1].last == pytest.approx(good, rel=0.03)


def test_more_than_was_sent_is_refused(tmp_path):
    trial = trial_of(
        read_sent_load(manifest(tmp_path, records=RECORDS // 2)), recording(tmp_path), tmp_path / "t", (), 5.0
    )
    with pytest.raises(UserError, match=r"read from transactions: the topic also has records of another load$"):
        trial.measured()


def test_a_load_that_is_invalid_tells_nothing_of_the_jobs(tmp_path):
    file = manifest(tmp_path, sent={"valid": False, "invalid_because": "p99 lateness was 2 s"})
    with pytest.raises(UserError) as told:
        read_sent_load(file)
    assert str(told.value) == (
        f"cannot judge by {file}: the load is INVALID (p99 lateness was 2 s), so it does not measure the jobs"
    )


def test_a_load_of_which_nobody_knows_what_arrived_is_refused(tmp_path):
    file = manifest(tmp_path, exact=False)
    with pytest.raises(UserError) as told:
        read_sent_load(file)
    assert str(told.value) == (
        f"cannot judge by {file}: records were rejected or their delivery is unknown, so the rows that a "
        "job read are not known; repeat the load"
    )


def test_a_load_that_was_sent_at_once_has_no_due_times(tmp_path):
    file = manifest(tmp_path, sent={"planned": RECORDS})
    with pytest.raises(UserError, match=r"the load was sent with --at-once, not on schedule$"):
        read_sent_load(file)


def test_more_records_than_the_plan_has_are_refused(tmp_path):
    plan = parse_plan("phases: [{shape: constant, rate: 10, duration: 10s}, {shape: constant, rate: 0}]")
    assert read_sent_load(manifest(tmp_path, text=plan.text, records=100)).last == pytest.approx(10.0)
    with pytest.raises(UserError, match=r"its plan has fewer than 101 records$"):
        read_sent_load(manifest(tmp_path, text=plan.text, records=101))


@pytest.mark.parametrize("changes", [{"scheduled": None}, {"appended": 0.15}, {"created": 0}])
def test_samples_without_a_leg_are_read(tmp_path, changes):
    file = tmp_path / "samples.jsonl"
    file.write_text("".join(json.dumps(each) + "\n" for each in (SAMPLE, {**SAMPLE, **changes})))
    assert read_sent_load(manifest(tmp_path), file).sending_legs["to the broker"].at(0.5) == pytest.approx(0.2)


@pytest.mark.parametrize("changes", [{"source": "replay", "text": None, "origin": None}, {"topic": None}])
def test_a_load_without_due_times_or_topic_is_refused(tmp_path, changes):
    with pytest.raises(UserError, match=r"only a plan that was sent to Kafka has a due time for each record$"):
        read_sent_load(manifest(tmp_path, **changes))


def test_a_job_that_is_not_in_the_recording_is_named(tmp_path):
    with pytest.raises(UserError, match=r"^no batch of large_credits in .*; it has batches of daily_counts$"):
        trial_of(read_sent_load(manifest(tmp_path)), recording(tmp_path), tmp_path / "t", ("large_credits",), 20.0)


def test_a_load_shorter_than_its_warm_up_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"took 80 s, all of it warm-up; give a shorter --warm-up$"):
        trial_of(read_sent_load(manifest(tmp_path)), recording(tmp_path), tmp_path / "t", (), 90.0)


def test_the_command_judges_and_writes_a_report(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    place, file = recording(tmp_path), manifest(tmp_path)
    samples = [
        {"number": n, "transaction_id": f"T{n}", "scheduled": ORIGIN + n, "created": ORIGIN + n + 0.005}
        | {"acknowledged": ORIGIN + n + 0.02, "appended": None}
        for n in range(50)
    ]
    (tmp_path / "samples.jsonl").write_text("".join(json.dumps(each) + "\n" for each in samples))
    argv = ["load", "test", "--manifest", str(file), "--recording", str(place), "--samples", "samples.jsonl"]
    assert main([*argv, "--slo", "p99 latency < 5s"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0] == "generator  p50 0.005 s, p99 0.005 s, by the generator's samples"
    assert "daily_counts  PASSED: p99 latency 3.1" in out
    [folder] = (tmp_path / "runs").iterdir()
    html = (folder / "test.html").read_text()
    assert "daily_counts passed at plan steady, sent to Kafka" in html
    assert "before its batch, from the generator&#39;s samples: to the broker" in html
    assert "cores" not in html
    told = json.loads((folder / "test.json").read_text())
    assert told["sending_seconds"]["to the broker"]["p99"] == pytest.approx(0.02, abs=1e-5)
    assert told["environment"]["cores_of_spark"] is None


def test_the_command_refuses_half_of_what_it_needs(tmp_path, refusal):
    file = manifest(tmp_path)
    for argv, said in (
        (("--manifest", file), "--manifest needs --recording PLACE, the recording of the jobs that read the load"),
        (("--recording", "x", "--rate", "5"), "--recording and --samples need --manifest"),
        (
            ("--manifest", file, "--recording", "x", "--rate", "5"),
            "--manifest judges what was sent: --rate cannot be combined with it",
        ),
        (
            ("burst", "--manifest", file, "--recording", "x", "--duration", "60", "--trigger", "5s", "--cores", "2"),
            "--manifest judges what was sent: a PLAN, --duration, --trigger, --cores cannot be combined with it",
        ),
    ):
        assert refusal("load", "test", *argv) == said
