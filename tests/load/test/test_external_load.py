"""Loads that were sent to Kafka, judged by manifest and recording."""

import json
from dataclasses import replace

import pytest

from ledgerops.cli import main
from ledgerops.errors import UserError
from ledgerops.ledger.plan.manifest import Manifest
from ledgerops.ledger.plan.summary import Summary
from ledgerops.load.test import plans
from ledgerops.load.test.cause import examine
from ledgerops.load.test.driver import TrialRequest
from ledgerops.load.test.external_load import read_sent_load, trial_of
from ledgerops.model.spark_progress import format_instant, parse_progress
from tests.load.test.simulated import ORIGIN, RUN, System, line
from tests.refusals import refusal_of

PLAN = plans.at_rate(12_000, 2.0)
SECONDS = 80.0
RECORDS = PLAN.schedule.due(SECONDS)
AT_TWICE = plans.at_rate(24_000, 2.0)


def manifest(folder, **changes):
    summary = Summary()
    summary.all.rows = changes.get("rows", changes.get("records", RECORDS))
    given = {
        "source": "plan", "plan": "steady", "digest": PLAN.digest, "table": "transactions", "topic": "transactions",
        "records": RECORDS, "summary": summary, "seed": 7, "origin": ORIGIN, "text": PLAN.text,
        "sent": {"valid": True}, **{name: value for name, value in changes.items() if name != "rows"},
    }  # fmt: skip
    file = folder / "manifest.json"
    Manifest(**given).write(file)
    return file


def recording(folder, **system):
    wanted = TrialRequest(("daily_counts",), PLAN, 20.0, SECONDS - 20.0, 2.0)
    return System(noise=0.0, **system).perform(wanted, folder / "ran", lambda what, share: None).recording


def add(folder, segment, at, kind, **data):
    """Adds a line to a recording, in a segment of its own."""
    (folder / f"recording-{segment:06}.jsonl").write_text(line(at, kind, {"id": "q", "runId": RUN, **data}))


@pytest.fixture
def trial(tmp_path):
    """A trial of the load of a manifest, as a system read it."""

    def read(jobs=(), warm_up=20.0, system=None, **changes):
        place = recording(tmp_path, **(system or {}))
        return trial_of(read_sent_load(manifest(tmp_path, **changes)), place, tmp_path / "t", jobs, warm_up)

    return read


def test_due_times_are_the_manifests(trial):
    found = trial().measured()["daily_counts"]
    embedded = System(noise=0.0).measured(PLAN, SECONDS - 20.0)
    assert found.rows.latency.at(0.99) == pytest.approx(embedded.rows.latency.at(0.99), abs=0.05)
    assert found.trigger == 2.0
    assert found.end - found.begin == pytest.approx(60.0, abs=0.1)


def test_what_a_topic_held_before_is_not_of_this_load(trial):
    found = trial(jobs=("daily_counts",), system={"base": 1_000_000}).measured()["daily_counts"]
    assert found.rows.latency.at(0.99) == pytest.approx(3.2, abs=0.1)


def test_poison_has_offsets_and_is_no_row(trial):
    good = round(RECORDS / 1.02)
    found = trial(records=good, poison={"invalid_json": RECORDS - good}).measured()["daily_counts"]
    assert found.done[-1].last == pytest.approx(good, rel=0.03)


def test_more_than_was_sent_is_refused(trial):
    told = refusal_of(trial(warm_up=5.0, records=RECORDS // 2).measured)
    assert told.endswith("read from transactions: the topic also has records of another load")


@pytest.mark.parametrize("per_row", [1.6 / 48_000, 3.2 / 48_000], ids=["keeps up", "is overloaded"])
def test_jobs_that_read_another_load_before_are_judged_as_by_this_one_alone(tmp_path, trial, per_row):
    before = System(noise=0.0).records(plans.at_rate(10_000, 2.0), 100.0, 2.0, origin=ORIGIN - 160.0)
    held = before[-1]["sources"][0]["endOffset"]["transactions"]["0"]
    found = trial(system={"base": held, "per_row": per_row})
    lines = [line(parse_progress(each).ended, "progress", each) for each in before]
    (found.recording / "recording-000000.jsonl").write_text("".join(lines))
    found = found.measured()["daily_counts"]
    alone = System(noise=0.0, per_row=per_row).measured(PLAN, SECONDS - 20.0)

    assert found.lag == pytest.approx(alone.lag, abs=0.05)
    assert found.processed == pytest.approx(alone.processed, abs=0.001)


def test_a_load_that_began_before_the_jobs_had_read_the_topic_is_refused(tmp_path, trial):
    """Their records of before would be taken for the first of the load, and its own for later ones than they are."""
    told = refusal_of(trial(warm_up=5.0, origin=ORIGIN + 30.5, system={"per_row": 4 / 48_000}).measured)
    assert told == (
        f"cannot judge by {tmp_path / 'manifest.json'}: 48,000 records of transactions were unread when 9,000 were "
        "due: the jobs had not read those of before the load; wait until they have, and repeat it"
    )


@pytest.mark.parametrize(
    ("at", "error"),
    [(-30.0, None), (SECONDS / 2, "java.lang.Exception: boom"), (SECONDS + 30.0, None)],
    ids=["before the load", "under the load", "after the load"],
)
def test_a_job_failed_the_test_if_it_failed_under_the_load(tmp_path, at, error):
    place, load = recording(tmp_path), read_sent_load(manifest(tmp_path))
    add(place, 0 if at < 0 else 2, ORIGIN + at, "terminated", exception="java.lang.Exception: boom")
    if error:
        add(place, 3, ORIGIN + SECONDS + 60.0, "terminated", exception="java.lang.Exception: later")
    measured = trial_of(load, place, tmp_path / "t", (), 20.0).measured()["daily_counts"]
    assert measured.error == error


def test_what_the_diagnosis_finds_after_the_load_is_no_cause(tmp_path):
    place, load = recording(tmp_path), read_sent_load(manifest(tmp_path))
    add(place, 2, ORIGIN + SECONDS + 30.0, "started", runId="2", timestamp=format_instant(ORIGIN + SECONDS + 30.0))
    add(place, 3, ORIGIN + SECONDS + 40.0, "terminated", runId="2", exception="java.lang.Exception: boom")
    measured = trial_of(load, place, tmp_path / "t", (), 20.0).measured()["daily_counts"]
    [found] = examine(place, [measured])
    assert (found.periods, found.causes) == ([], [])
    [found] = examine(place, [replace(measured, end=measured.end + 60.0)])
    assert [each.finding.rule for each in found.periods] == ["query-failed"]


def test_what_came_while_the_first_batch_looked_for_it_is_of_the_load(tmp_path):
    first = System(noise=0.0).records(PLAN, 5.0, 2.0)[0]
    first |= {"timestamp": format_instant(ORIGIN + 0.1), "durationMs": first["durationMs"] | {"latestOffset": 1_900}}
    [found] = read_sent_load(manifest(tmp_path)).done([parse_progress(first)])
    assert (found.first, found.last) == (0, PLAN.schedule.due(2.0))


ENDING = "phases: [{shape: constant, rate: 10, duration: 10s}, {shape: constant, rate: 0}]"
NO_DUE_TIMES = "only a plan that was sent to Kafka has a due time for each record"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (
            {"sent": {"valid": False, "invalid_because": "p99 lateness was 2 s"}},
            "the load is INVALID (p99 lateness was 2 s), so it does not measure the jobs",
        ),
        (
            {"exact": False},
            "records were rejected or their delivery is unknown, so the rows that a job read are not known; "
            "repeat the load",
        ),
        ({"sent": {"planned": RECORDS}}, "the load was sent with --at-once, not on schedule"),
        ({"text": ENDING, "records": 101}, "its plan has fewer than 101 records"),
        ({"source": "replay", "text": None, "origin": None}, NO_DUE_TIMES),
        ({"topic": None}, NO_DUE_TIMES),
    ],
    ids=["invalid", "not exact", "at once", "more records than its plan has", "a replay", "no topic"],
)
def test_a_load_by_which_no_job_can_be_judged_is_refused(tmp_path, changes, why):
    file = manifest(tmp_path, **changes)
    assert refusal_of(read_sent_load, file) == f"cannot judge by {file}: {why}"


def test_a_load_ends_with_its_last_record(tmp_path):
    assert read_sent_load(manifest(tmp_path, text=ENDING, records=100)).last == pytest.approx(10.0)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"jobs": ("large_credits",)}, r"^no batch of large_credits in .*; it has batches of daily_counts$"),
        ({"warm_up": 90.0}, r"took 80 s, all of it warm-up; give a shorter --warm-up$"),
    ],
    ids=["a job that is not in the recording", "shorter than its warm-up"],
)
def test_a_trial_that_cannot_be_judged_is_refused(trial, options, line):
    with pytest.raises(UserError, match=line):
        trial(**options)


def test_the_command_judges_and_writes_a_report(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    place, file = recording(tmp_path), manifest(tmp_path)
    argv = ["load", "test", "--manifest", str(file), "--recording", str(place), "--slo", "p99 latency < 5s"]
    assert main(argv) == 0
    assert capsys.readouterr().out.startswith("daily_counts  PASSED: p99 latency 3.1")
    [folder] = (tmp_path / "runs").iterdir()
    html = (folder / "test.html").read_text()
    assert "daily_counts passed at plan steady, sent to Kafka" in html
    assert "cores" not in html
    told = json.loads((folder / "test.json").read_text())
    assert told["environment"]["cores_of_spark"] is None


REFUSED = {
    "--manifest m.json": "--manifest needs --recording PLACE, the recording of the jobs that read the load",
    "--recording x --rate 5": "--recording needs --manifest",
    "--manifest m.json --recording x --rate 5": "--manifest judges what was sent: --rate cannot be combined with it",
    "burst --manifest m.json --recording x --duration 60 --trigger 5s --cores 2": (
        "--manifest judges what was sent: a PLAN, --duration, --trigger, --cores cannot be combined with it"
    ),
}


@pytest.mark.parametrize(("argv", "line"), REFUSED.items(), ids=REFUSED)
def test_the_command_refuses_half_of_what_it_needs(refusal, argv, line):
    assert refusal("load", "test", *argv.split()) == line


def test_of_a_table_only_its_rows_are_in_the_topic(trial):
    """Debits are about half of the records of the stream."""
    found = trial(jobs=("daily_counts",), records=2 * RECORDS, rows=RECORDS, text=AT_TWICE.text)
    assert found.measured()["daily_counts"].rows.latency.at(0.99) == pytest.approx(3.2, abs=0.1)


def test_a_load_whose_poison_changes_has_no_due_times(tmp_path):
    changing = PLAN.text + "changes: [{from: 20s, to: 40s, poison: {share: 0.5}}]\n"
    assert refusal_of(read_sent_load, manifest(tmp_path, text=changing)).endswith(
        "the share of its poison changes, so no offset has a due time"
    )
