"""`ledgerops jobs`: all, a group, or one."""

import pytest

from ledgerops.ledger.jobs import JOBS, find_job
from ledgerops.ledger.jobs.job import GROUPS


@pytest.fixture
def listed(ledgerops):
    """The names of groups and jobs, without the last line."""

    def names(*argv):
        told = ledgerops("jobs", *argv)
        assert told.code == 0
        return [line.split()[0] for line in told.lines[:-2]]

    return names


@pytest.mark.parametrize("argv", [[], ["all"]], ids=["no name", "all"])
def test_all_jobs_are_listed_below_their_groups(listed, argv):
    assert set(listed(*argv)) == {job.name for job in JOBS} | {job.group for job in JOBS}


def test_a_group_and_one_job_are_listed_alone(listed):
    assert listed("stateful") == ["stateful", *(job.name for job in JOBS if job.group == "stateful")]
    assert listed("daily_counts") == [find_job("daily_counts").group, "daily_counts"]


@pytest.mark.parametrize(
    ("typed", "hint"),
    [("daily_count", "did you mean daily_counts?"), ("statful", "did you mean stateful?"), ("nosuch", "there are ")],
)
def test_a_name_that_is_none_has_a_suggestion_or_the_list(refusal, typed, hint):
    line = refusal("jobs", typed)
    assert line.startswith(f"no job named '{typed}'; {hint}")
    assert ("there are" in line) == all(name in line for name in GROUPS)
