"""The table of what was tried, and how an environment that cannot be made is reported."""

import pytest

from load.compatibility import __main__ as command
from load.compatibility.environments import Unsolvable, Wheels, find_python, unsolvable
from load.compatibility.results import (
    FAULTS,
    PYTHONS,
    REFERENCE,
    SESSIONS,
    Tried,
    keep,
    missing,
    read,
    tables,
    unmeasured,
)
from tests.paths import ROOT
from tests.tables import cases

FAMILIES = ["ledgerops_batches_total", "ledgerops_query_info", "ledgerops_state_rows"]
WHOLE = Tried(*REFERENCE, FAMILIES, list(FAULTS))


def lines_of(*tried: Tried) -> list[str]:
    return tables({each.key: each for each in (WHOLE, *tried)}).splitlines()


def rows_of(spark, *tried):
    """The cells of a Spark version behind its number."""
    lines = lines_of(*tried)
    return [line.strip("| ").split(" | ")[1:] for line in lines if line.startswith(f"| {spark} |")]


def test_what_was_not_tried_is_said_so():
    lines = lines_of()

    assert lines[-1] == "1 of 30 combinations were tried."
    assert rows_of("4.3.0") == [["classic, connect", "3.11, 3.12, 3.13", "not tried", "–"]]
    assert rows_of(WHOLE.spark) == [
        ["classic", "3.11", f"all {len(FAULTS)}", "none"],
        ["classic", "3.12, 3.13", "not tried", "–"],
        ["connect", "3.11, 3.12, 3.13", "not tried", "–"],
    ]


def test_what_a_version_lacks_is_named():
    part = Tried("4.0.5", "connect", "3.12", FAMILIES[:-1], ["slow-sink"])
    assert missing(part, WHOLE) == ["ledgerops_state_rows"]
    unnamed = ", ".join(f"`{rule}`" for rule in FAULTS if rule != "slow-sink")
    assert ["connect", "3.12", f"all but {unnamed}", "`ledgerops_state_rows`"] in rows_of("4.0.5", part)


def test_a_session_that_cannot_be_watched_is_said_without_the_words_of_its_error():
    refused = Tried("3.5.7", "connect", "3.11", reason="PicklingError: no listener.")
    assert ["connect", "3.11", "no session can be watched", "–"] in rows_of("3.5.7", refused)
    assert "PicklingError" not in "\n".join(lines_of(refused))


def test_combinations_of_one_spark_that_lack_the_same_share_a_row():
    alike = [Tried("4.0.5", session, python, FAMILIES[:-1], list(FAULTS)) for session in SESSIONS for python in PYTHONS]
    lacking = [f"all {len(FAULTS)}", "`ledgerops_state_rows`"]

    assert rows_of("4.0.5", *alike) == [["classic, connect", "3.11, 3.12, 3.13", *lacking]]
    assert rows_of("4.0.5", *alike[:4]) == [
        ["classic", "3.11, 3.12, 3.13", *lacking],
        ["connect", "3.11", *lacking],
        ["connect", "3.12, 3.13", "not tried", "–"],
    ]


@cases(
    "days, said",
    ("no date", [], "1 of 30 combinations were tried."),
    ("one day", ["22"], "2 of 30 combinations were tried (2026-11-22)."),
    ("two days", ["23", "22"], "3 of 30 combinations were tried (2026-11-22 to 2026-11-23)."),
)
def test_the_page_says_how_many_were_tried_and_when(days, said):
    tried = [Tried("4.1.4", "classic", PYTHONS[number], at=f"2026-11-{day}") for number, day in enumerate(days)]
    assert lines_of(*tried)[-1] == said


def test_more_than_the_reference_has_is_not_missing():
    assert missing(Tried("4.3.0", "classic", "3.11", [*FAMILIES, "ledgerops_host_cpu_ratio"]), WHOLE) == []


def test_what_is_kept_is_read_again_and_one_environment_replaces_what_was_known_of_it(tmp_path):
    file = tmp_path / "results.json"
    assert read(file) == {}
    keep(WHOLE, file)
    assert read(file) == {WHOLE.key: WHOLE}

    keep(Tried("4.0.5", "classic", "3.12", FAMILIES), file)
    keep(Tried(*REFERENCE, FAMILIES, ["slow-sink"]), file)

    assert [(each.spark, each.rules) for each in read(file).values()] == [("4.0.5", []), ("4.2.0", ["slow-sink"])]


def test_the_reason_is_the_last_exception_that_was_printed():
    printed = "Traceback:\npyspark.errors.SparkError: no\n\tat org.apache.Thread.run(Thread.java:1)\n"
    assert command.reason(printed) == "pyspark.errors.SparkError: no"
    assert command.reason("a\nb\n") == "b"
    assert command.reason("") == "no output"


def test_the_page_shows_what_is_kept(tmp_path):
    written, again = ROOT / "docs/compatibility.md", tmp_path / "page.md"
    again.write_bytes(written.read_bytes())
    assert command.main(["--page", str(again)]) == 0
    assert again.read_text("utf-8") == written.read_text("utf-8")


def test_an_interpreter_that_is_absent_is_reported_and_the_command_fails(capsys):
    assert command.main(["--spark", "4.2.0", "--python", "3.99", "--session", "classic"]) == 2
    assert capsys.readouterr().err == "Spark 4.2.0, classic, Python 3.99: no interpreter python3.99\n"


def test_a_resumed_command_leaves_out_what_is_kept(monkeypatch, tmp_path, capsys):
    kept, later = tmp_path / "results.json", []
    keep(WHOLE, kept)
    monkeypatch.setattr(command, "read", lambda: read(kept))
    monkeypatch.setattr(command, "keep", later.append)
    monkeypatch.setattr(command, "tried", lambda *cell: Tried(*cell[:3], FAMILIES, ["slow-sink"]))
    arguments = ["--spark", "4.2.0", "--session", "classic", "--python", "3.11", "3.12"]

    assert command.main([*arguments, "--resume"]) == 0
    assert [each.key for each in later] == [("4.2.0", "classic", "3.12")]
    assert capsys.readouterr().out == "Spark 4.2.0, classic, Python 3.12: 3 families; slow-sink\n"
    assert command.main(arguments) == 0
    assert len(later) == 3


def test_a_shim_that_does_not_run_is_passed_over_for_an_interpreter_of_pyenv(monkeypatch, tmp_path):
    def program(path, code):
        path.parent.mkdir(parents=True)
        path.write_text(f"#!/bin/sh\nexit {code}\n")
        path.chmod(0o755)

    shim, own = tmp_path / "shims/python3.99", tmp_path / "versions/3.99.1/bin/python3.99"
    program(shim, 127)
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setenv("PATH", str(shim.parent), prepend=":")
    assert find_python("3.99") is None

    program(own, 0)
    assert find_python("3.99") == str(own)


def test_a_wheel_of_spark_that_is_there_is_not_built_again(tmp_path):
    wheel = tmp_path / "pyspark-4.2.0-py2.py3-none-any.whl"
    wheel.touch()
    assert Wheels(tmp_path, tmp_path).of_spark("4.2.0") == wheel


UV = """\
error: No solution found when resolving dependencies
  cause: Because numpy>=1.26.0,<=1.26.4 has no usable wheels and pyspark[connect]==3.5.7 depends on numpy>=1.15,<2,
         we can conclude that all versions of pyspark[connect] cannot be used.
         And because you require pyspark[connect], we can conclude that your requirements are unsatisfiable.

hint: Wheels are required for `numpy` because building from source is disabled for all packages
"""
NO_WHEELS = "numpy>=1.26.0,<=1.26.4 has no usable wheels"
PIP = """\
ERROR: Could not find a version that satisfies the requirement numpy<2,>=1.15 (from versions: 2.1.0)
ERROR: No matching distribution found for numpy<2,>=1.15
"""


@cases(
    "stderr, why",
    ("uv", UV, f"No solution found; {NO_WHEELS}; pyspark[connect]==3.5.7 depends on numpy>=1.15,<2"),
    ("pip", PIP, "No matching distribution found for numpy<2,>=1.15"),
    ("no network", "error: Failed to fetch the index\n  cause: timed out\n", ""),
    ("nothing printed", "", ""),
)
def test_packages_that_do_not_fit_together_are_told_from_an_installer_that_failed(stderr, why):
    assert unsolvable(stderr) == why


@pytest.fixture
def no_extra(monkeypatch):
    """No version of Spark's extra fits, and a probe that sees all."""

    def environment(folder, *versions, extra="[connect]"):
        if extra:
            raise Unsolvable("No solution found")
        return folder

    monkeypatch.setattr(command, "environment", environment)
    monkeypatch.setattr(command, "probe", lambda _, *cell: Tried(*cell, FAMILIES, list(FAULTS), notes=["a note"]))


def test_where_packages_do_not_fit_a_classic_session_is_tried_without_and_a_connect_session_not(no_extra, tmp_path):
    wheels = Wheels(tmp_path, tmp_path)
    connect, classic = (command.tried("3.5.7", session, "3.13", wheels) for session in ("connect", "classic"))

    assert (connect.reason, connect.rules) == ("No solution found", ())
    assert classic.reason == ""
    assert classic.notes == ["without the packages of `pyspark[connect]`: No solution found", "a note"]
    assert "pyspark[connect]" not in "\n".join(lines_of(classic))


@pytest.mark.parametrize(("spark", "rules"), [("3.5.7", ["python-bound"]), ("4.0.5", []), ("4.3.0", [])])
def test_no_time_is_spent_on_a_rule_that_a_version_cannot_feed(spark, rules):
    assert list(unmeasured(spark)) == rules
