"""A driver of its own, that cannot begin: nothing of Spark is started for it."""

from ledgerops.load.test import plans
from ledgerops.load.test.driver import TrialRequest
from ledgerops.load.test.trial import perform
from tests.load.test.simulated import System
from tests.refusals import refusal_of


def quiet(what, share):
    pass


def wanted(job="daily_counts"):
    return TrialRequest((job,), plans.at_rate(1000.0, 2.0), 20.0, 30.0, 2.0)


def test_a_driver_that_dies_is_a_failed_trial_with_its_last_line(tmp_path):
    told = perform(wanted("no_such_job"), tmp_path / "t", quiet)
    assert told.origin is None
    assert told.errors["no_such_job"].startswith("the driver exited with code 2: no job named 'no_such_job'")
    assert told.measured()["no_such_job"].unknown_because == told.errors["no_such_job"]
    assert (tmp_path / "t" / "driver.err").read_text().startswith("ledgerops: no job named 'no_such_job'")


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    line = refusal_of(perform, wanted(), tmp_path / "file" / "t", quiet)
    assert line == f"cannot write to {tmp_path}/file/t: not a directory"


def test_what_a_driver_shall_do_survives_its_file(tmp_path):
    wanted().write(tmp_path)
    assert TrialRequest.read(tmp_path) == wanted()


def test_batches_that_are_none_are_passed_over(tmp_path):
    told = System().perform(wanted(), tmp_path, quiet)
    file = told.recording / "recording-000001.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    broken = '{"at": "2027-01-15T08:00:00Z", "kind": "progress", "query": "daily_counts", "data": {"batchId": "x"}}\n'
    file.write_text("".join([lines[0], broken, *lines[1:]]) + '{"at": "torn')
    assert len(told.measured()["daily_counts"].done) == sum('"progress"' in line for line in lines)
