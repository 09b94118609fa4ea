"""Every command that the documentation shows is run, and what it prints has the form that is shown."""

import os
import re
import sys
from pathlib import Path

import pytest

from docs.site.console import blocks, differs, form
from ledgerops.servers.kafka import Kafka
from tests.paths import ROOT
from tests.postgres import Postgres
from tests.programs import finished, without_settings
from tests.tables import cases

BLOCKS = blocks()
KINDS = ("checkout", "folder", "kafka", "kafka and postgres", "first-steps", "not run")
SECONDS = 300  # patience with one command on a busy machine
SKIPPED = ("pip install", "python3 -m venv")  # what is installed here is what is tested


def of_kind(*kinds):
    return [pytest.param(block, id=block.place) for block in BLOCKS if block.kind in kinds]


def run(command, folder, servers=()):
    for shown, real in servers:
        command = command.replace(shown, real)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environ = without_settings(PATH=path, NO_COLOR="1", COLUMNS="200")
    return finished("bash", "-c", command, cwd=folder, timeout=SECONDS, env=environ)


def check(block, folder, servers=()):
    for step in block.steps:
        if step.command.startswith(SKIPPED):
            continue
        done = run(step.command, folder, servers)
        printed = done.stdout
        for shown, real in servers:
            printed = printed.replace(real, shown)
        assert done.returncode in (0, 1), f"{block.place}: {step.command}: {done.stderr}"
        assert differs(step.output, printed.rstrip().split("\n")) is None, f"{block.place}:\n{printed}"


def test_each_block_is_run_or_says_why_not():
    assert [block.place for block in BLOCKS if block.kind not in KINDS] == []
    assert [block.place for block in BLOCKS if block.kind == "not run" and len(block.note["not run"].split()) < 3] == []
    assert [block.place for block in BLOCKS if not block.steps] == []


def test_a_test_that_runs_a_block_elsewhere_exists():
    reasons = [(block.place, block.note.get("not run", "")) for block in BLOCKS]
    named = [(place, test) for place, reason in reasons for test in re.findall(r"tests/[\w/.]*\w", reason)]
    assert len(named) > 10
    assert [f"{place}: {test}" for place, test in named if not (ROOT / test).exists()] == []


@pytest.mark.parametrize("block", of_kind("checkout"))
def test_a_block_prints_in_a_checkout_what_it_shows(block):
    check(block, ROOT)


@pytest.mark.parametrize("block", of_kind("folder"))
def test_a_block_prints_in_an_empty_folder_what_it_shows(block, tmp_path):
    for name, text in block.files.items():
        (tmp_path / name).write_text(text)
    check(block, tmp_path)


@pytest.mark.e2e
@pytest.mark.parametrize("block", of_kind("kafka"))
def test_a_block_prints_with_a_broker_what_it_shows(block, own_broker, tmp_path):
    check(block, tmp_path, [("localhost:9092", own_broker)])


@pytest.mark.e2e
@pytest.mark.parametrize("block", of_kind("kafka and postgres"))
def test_a_block_prints_with_both_servers_what_it_shows(block, own_broker, own_database, tmp_path):
    servers = [("localhost:9092", own_broker), ("postgresql://ledger@localhost/ledger", own_database)]
    check(block, tmp_path, servers)


@pytest.fixture(scope="module")
def own_database(tmp_path_factory):
    """A database whose tables have the ledger's own names."""
    with Postgres(tmp_path_factory.mktemp("postgres")) as server:
        yield server.url


@pytest.fixture
def own_broker(server_jars, tmp_path):
    """A broker whose topics have the ledger's own names: the shared one may have them from another test."""
    with Kafka(tmp_path / "kafka") as broker:
        yield broker.client.servers


@cases(
    "shown, printed",
    ("other numbers", ["a 1.5 s of 2.0 s"], ["a 14 s of 5.0 s"]),
    ("any lines", ["..."], ["whatever"]),
    ("a gap", ["first", "...", "last"], ["first", "between", "last"]),
    ("a gap within a line", ["not slow: ... and 3 more"], ["not slow: it is quick; and 12 more"]),
    ("another status", ["orders  pressured  health 61"], ["orders  falling behind health 7"]),
    ("no output is shown", [], ["whatever"]),
)
def test_the_same_form(shown, printed):
    assert differs(shown, printed) is None


@cases(
    "shown, printed",
    ("another word", ["batch 1.5 s"], ["duration 1.5 s"]),
    ("more than is shown", ["one"], ["one", "two"]),
    ("less than is shown", ["one", "two"], ["one"]),
    ("another order", ["first", "...", "last"], ["last", "first"]),
    ("a gap that is not shown", ["one", "three"], ["one", "two", "three"]),
)
def test_another_form(shown, printed):
    assert differs(shown, printed) is not None


def test_values_are_not_part_of_the_form():
    told = form("  2026-11-21 18:47:18 UTC: key 789087abc47c has 80% of 1,200 rows ▆▇▇")
    assert told == "# UTC: key H has # of # rows B"
