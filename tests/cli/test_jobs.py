"""`ledgerops jobs`: all, a group, or one."""

from __future__ import annotations

import pytest

from ledgerops.cli import main
from ledgerops.ledger.jobs import JOBS
from ledgerops.ledger.jobs.job import GROUPS


def listed(capsys, *argv):
    """The names of groups and jobs, without the last line."""
    assert main(["jobs", *argv]) == 0
    return [line.split()[0] for line in capsys.readouterr().out.splitlines()[:-2]]


@pytest.mark.parametrize("argv", [[], ["all"]], ids=["no name", "all"])
def test_all_jobs_are_listed_below_their_groups(capsys, argv):
    names = listed(capsys, *argv)
    assert {job.name for job in JOBS} | {job.group for job in JOBS} == set(names)


def test_the_jobs_of_a_group_are_listed_alone(capsys):
    assert listed(capsys, "stateful") == ["stateful", *(job.name for job in JOBS if job.group == "stateful")]


def test_one_job_is_listed_below_its_group(capsys):
    [job] = [job for job in JOBS if job.name == "daily_counts"]
    assert listed(capsys, "daily_counts") == [job.group, "daily_counts"]


@pytest.mark.parametrize(
    ("typed", "hint"),
    [("daily_count", "did you mean daily_counts?"), ("statful", "did you mean stateful?"), ("nosuch", "there are ")],
)
def test_a_name_that_is_none_has_a_suggestion_or_the_list(capsys, typed, hint):
    assert main(["jobs", typed]) == 2
    line = capsys.readouterr().err
    assert line.startswith(f"ledgerops: no job named '{typed}'; {hint}")
    assert ("there are" in line) == all(name in line for name in GROUPS)
