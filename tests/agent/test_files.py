"""The files of each batch, read from a checkpoint as Spark writes it."""

import json
import os
from dataclasses import replace

import pytest

from ledgerops.agent.files import FileCollector
from ledgerops.model.observations import build
from ledgerops.model.records import BatchFiles, FilesRead
from ledgerops.runtime.runs import FileEntries, FileEntry, file_entries
from tests.agent.fakes import FakeSession, queue, roster_of, run_of, taken
from tests.build import T0, batch, source
from tests.paths import ROOT
from tests.tables import cases

FILES = "FileStreamSource[file:/landing]"


class Case:
    """A run that has read two files, which arrived at T0 and 3 s later; its collector, and what that has queued."""

    def __init__(self, folder):
        self.landing, self.checkpoint = folder / "landing", folder / "checkpoint"
        self.log = self.checkpoint / "sources" / "0"
        for made in (self.landing, self.log):
            made.mkdir(parents=True)
        self.box, self.run, self.asked = queue(), run_of(FakeSession()), 0
        self.arrive(3, 0.0, 3.0)
        self.collector = FileCollector(self.box, roster_of(self.run), self.where)

    def arrive(self, entry, *seconds):
        """A batch has ended that reads an entry with files of such ages."""
        lines = ["v1"]
        for number, after in enumerate(seconds):
            file = self.landing / f"part {entry}-{number}.json"
            file.touch()
            os.utime(file, (T0 + after, T0 + after))
            lines.append(json.dumps({"path": file.as_uri(), "timestamp": int((T0 + after) * 1000), "batchId": entry}))
        (self.log / str(entry)).write_text("\n".join(lines))
        os.utime(self.landing, (T0 + 30, T0 + 30))
        self.run.files = FileEntries(entry + 1, {"FileStreamSource": FileEntry(0, entry)})

    def where(self, run):
        self.asked += 1
        return self.checkpoint.as_uri()

    def collect(self):
        """What is told of the one source of each new batch."""
        self.collector.collect()
        return [build(BatchFiles, data).sources["FileStreamSource"] for _, data in taken(self.box)]


@pytest.fixture
def case(tmp_path):
    return Case(tmp_path)


def test_each_batch_is_told_once_with_the_times_of_its_files(case):
    for _ in range(2):
        case.collector.collect()
    [(kind, data)] = taken(case.box)
    files = build(BatchFiles, data)
    assert (kind, files.run_id, files.batch_id) == ("files", "run-1", 4)
    assert files.sources == {"FileStreamSource": FilesRead(2, T0, T0 + 3, T0 + 30)}


def test_the_place_of_a_checkpoint_is_asked_for_once(case):
    newest = [files.newest for files in case.collect()]
    case.arrive(4, 9.0)
    newest += [files.newest for files in case.collect()]
    assert (newest, case.asked) == ([T0 + 3, T0 + 9], 1)


def test_a_run_without_file_sources_costs_no_question(case):
    for case.run.files in (None, FileEntries(4, {})):
        assert (case.collect(), case.asked) == ([], 0)


def test_a_folder_that_files_also_leave_does_not_tell_when_one_came(case):
    assert [files.folder_changed for files in case.collect()] == [T0 + 30]
    for file in case.landing.iterdir():
        file.unlink()
    case.arrive(4, 9.0)
    assert [files.folder_changed for files in case.collect()] == [None]


@cases(
    "place",
    ("unknown", None),
    ("on another file system", "hdfs://name:9000/checkpoint"),
    ("not there", "file:/absent/checkpoint"),
    ("no folder", (ROOT / "pyproject.toml").as_uri()),
)
def test_a_checkpoint_that_cannot_be_read_is_left_alone(case, place):
    case.collector = FileCollector(case.box, roster_of(case.run), lambda run: place)
    assert case.collect() + case.collect() == []


def test_a_batch_names_the_entries_of_its_file_sources_that_had_new_files():
    here, there = ("FileStreamSource", "0"), ("transactions", "0")
    sources = (
        source(10, {there: 1}, {there: 2}),
        file_source("FileStreamSource", {here: 3}, {here: 4}),
        file_source("FileStreamSource-2", {here: 7}, {here: 7}),
    )
    assert file_entries(batch(sources=sources)) == {"FileStreamSource": (1, 4, "file:/landing")}


def file_source(name, start, end):
    return replace(source(10, start, end, name=name), description=FILES, kind="files")


@cases(
    "described, found",
    ("its folder", "{landing}", True),
    ("a pattern", "{landing}/part*", True),
    ("another folder", "file:/elsewhere", False),
    ("not described", "", False),
)
def test_a_named_source_is_found_by_what_it_reads(case, described, found):
    """From Spark 4.2 on a source may have a name, which its progress does not say."""
    case.log.rename(case.log.parent / "orders")
    (case.log.parent / "customers").mkdir()
    folder = described.format(landing=case.landing.as_uri().replace("///", "/"))
    case.run.files = FileEntries(4, {"FileStreamSource": FileEntry(0, 3, folder)})
    assert [files.files for files in case.collect()] == [2] * found
