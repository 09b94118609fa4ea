"""The folder of a run: what is kept in it, when a run goes on with it, and when that is refused."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from ledgerops.ledger.run.run_dir import RunDir, RunNote, remove_unused
from tests.refusals import refusal_of
from tests.tables import cases

FIRST = RunNote("embedded", "default", "abc", 1000.0)
LATER = RunNote("embedded", "default", "abc", 2000.0)


@pytest.fixture
def root(tmp_path):
    return tmp_path / "runs"


def opened(root, note, fresh=False, begun=True):
    """Opens the folder, closes it, and leaves a checkpoint in it when the run is to have begun."""
    folder = RunDir(root, "default")
    found = folder.open(note, fresh)
    if begun:
        (folder.checkpoints / "daily_counts" / "offsets").mkdir(parents=True, exist_ok=True)
        (folder.checkpoints / "daily_counts" / "offsets" / "0").touch()
    folder.close()
    return found


def test_a_new_run_keeps_its_origin_and_the_next_goes_on_with_its_clock(root):
    assert opened(root, FIRST) == (FIRST, False)
    assert json.loads((root / "default" / "run.json").read_text())["origin"] == 1000.0
    assert opened(root, LATER) == (FIRST, True)


def test_every_run_is_an_application_of_its_own_and_the_same_when_it_is_resumed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = [RunDir(Path(out), plan).app for out, plan in (("runs", "default"), ("runs", "kafka"), ("other", "kafka"))]
    assert names == ["ledgerops runs/default", "ledgerops runs/kafka", "ledgerops other/kafka"]
    assert RunDir(tmp_path / "runs", "default").app == names[0]


def test_only_a_checkpoint_without_a_planned_batch_is_removed(tmp_path):
    (tmp_path / "used" / "offsets" / "0").mkdir(parents=True)
    (tmp_path / "new" / "sources" / "0").mkdir(parents=True)
    for name in ("used", "new", "absent"):
        remove_unused(tmp_path / name)
    assert [each.name for each in tmp_path.iterdir()] == ["used"]


def test_a_run_that_planned_no_batch_is_no_earlier_run(root):
    opened(root, FIRST, begun=False)
    assert opened(root, LATER) == (LATER, False)


def test_fresh_moves_each_earlier_run_to_a_place_of_its_own_and_loses_nothing(root):
    for origin in range(4):  # the first moves nothing
        note = replace(FIRST, origin=float(origin))
        assert opened(root, note, fresh=True) == (note, False)

    asides = list(root.glob("default-before-*"))
    assert sorted(json.loads((each / "run.json").read_text())["origin"] for each in asides) == [0.0, 1.0, 2.0]
    assert all((each / "checkpoints" / "daily_counts" / "offsets" / "0").exists() for each in asides)


def test_a_run_that_cannot_be_moved_aside_is_one_line(root):
    folder = RunDir(root, "x" * 250)  # as long as a name may be, but for a few letters
    folder.open(FIRST, fresh=False)
    folder.close()

    assert refusal_of(folder.open, LATER, fresh=True) == (
        f"cannot move {folder.path} aside: file name too long; move it away yourself, or give another folder with --out"
    )


def test_another_plan_is_refused_and_the_earlier_run_left_alone(root):
    opened(root, FIRST)
    assert "holds a run of another plan" in refusal_of(opened, root, replace(LATER, digest="changed"))
    assert opened(root, LATER) == (FIRST, True)


NOTE = '{"source": "embedded", "plan": "p", "digest": "d", "origin": '


@cases(
    "text",
    ("empty", ""),
    ("torn", "{"),
    ("a list", "[]"),
    ("keys absent", '{"source": "embedded"}'),
    ("nested too deeply", "[" * 100_000),
    ("no instant", NOTE + '"x"}'),
    ("no number", NOTE + "NaN}"),
    ("no topics", NOTE + '1, "topics": null}'),
)
def test_a_note_that_cannot_be_read_is_refused_and_fresh_helps(root, text):
    opened(root, FIRST)
    (root / "default" / "run.json").write_text(text)
    told = refusal_of(opened, root, LATER)
    assert told.startswith(f"cannot read {root}/default/run.json ") and told.endswith("; add --fresh to start over")
    assert opened(root, LATER, fresh=True) == (LATER, False)


def test_two_runs_in_one_folder_are_refused(root):
    first = RunDir(root, "default")
    first.open(FIRST, False)
    assert f"is in use by process {os.getpid()}; stop that run" in refusal_of(opened, root, FIRST)
    first.close()
    assert opened(root, LATER)[1] is False


KAFKA = RunNote("kafka", "one:9092", "abc", 1000.0, topics={"transactions": "id1"})


def test_an_address_that_changed_and_a_topic_more_are_noted(root):
    opened(root, KAFKA)
    both = {"transactions": "id1", "customers": "id2"}
    again = replace(KAFKA, plan="two:9092", origin=2000.0, topics={"customers": "id2"})
    assert opened(root, again) == (replace(KAFKA, plan="two:9092", topics=both), True)
    assert opened(root, KAFKA)[0].topics == both


@cases(
    "changed, message",
    ("cluster", {"digest": "x"}, "holds a run of another Kafka cluster (one:9092, since changed?)"),
    ("source", {"source": "files"}, "holds a run on another source (kafka, now files)"),
    (
        "topic",
        {"topics": {"transactions": "id9"}},
        "topic transactions was deleted and created again since the last run, so the offsets in the checkpoint are "
        "not valid",
    ),
    ("sink", {"sink": "kafka", "target": "one:9092"}, "wrote to parquet, not to kafka one:9092"),
)
def test_what_a_checkpoint_means_nothing_for_is_refused(root, changed, message):
    opened(root, KAFKA)
    told = refusal_of(opened, root, replace(KAFKA, **changed))
    assert told.endswith(f"{message}; add --fresh to start over, or give another folder with --out")
