"""`ledgerops state` where no Spark is needed: what is refused, and the table of a run."""

import io
import json
from functools import partial

import pytest
from rich.console import Console

from ledgerops.checkpoint.text_view import ListingText, StateText
from tests.checkpoint.fake import checkpoint, put, snapshot


@pytest.fixture
def refused(refusal):
    return partial(refusal, "state")


@pytest.fixture
def run(tmp_path):
    """A run of three jobs: one of which a recording tells, one of which snapshots tell, one without state."""
    folder = tmp_path / "runs" / "default"
    checkpoint(folder / "checkpoints" / "daily_counts")
    checkpoint(folder / "checkpoints" / "large_credits", operator=None)
    sums = checkpoint(folder / "checkpoints" / "sums", operator="flatMapGroupsWithState", files=["3.changelog"])
    for partition in (0, 1):
        snapshot(sums / "state" / "0" / str(partition) / "2.zip", 1000 + partition)
    progress = {
        "id": "id-daily_counts",
        "runId": "r",
        "batchId": 2,
        "timestamp": "2026-11-21T10:00:00Z",
        "stateOperators": [{"operatorName": "stateStoreSave", "numRowsTotal": 12_345}],
    }
    lines = [{"at": "2026-11-21T10:00:00Z", "kind": "progress", "query": "daily_counts", "data": progress}]
    put(folder / "recording" / "recording-000001.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    return folder


def test_a_run_is_told_by_its_files_and_its_recording(run, ledgerops):
    told = ledgerops("state", run)

    assert told.code == 0
    assert [" ".join(line.split()) for line in told.lines] == [
        "job operator parts batch rows bytes snapshot",
        "daily_counts stateStoreSave 2 2 12k 60 B none",
        "large_credits keeps no state",
        "sums flatMapGroupsWithState 2 2 2,001* 320 B 1 old",
        "* rows of an earlier batch; name the job's checkpoint to count the newest",
    ]


STRANGE = {"at": "2026-11-21T09:59:00Z", "kind": "progress", "query": "daily_counts", "data": {"id": 7}}


@pytest.mark.parametrize(
    ("number", "text"),
    [(1, json.dumps(STRANGE) + "\n"), (2, "nonsense\n{}\n")],
    ids=["a strange record before the others", "a torn segment behind"],
)
def test_a_record_that_cannot_be_read_hides_no_other(run, ledgerops, number, text):
    segment = run / "recording" / f"recording-00000{number}.jsonl"
    put(segment, text + (segment.read_text() if segment.exists() else ""))
    told = ledgerops("state", run)
    assert (told.code, "12k" in told.out) == (0, True)


@pytest.mark.parametrize(("columns", "most"), [("80", 80), ("120", 120), ("wide", 120)])
def test_a_run_fits_the_terminal(run, ledgerops, monkeypatch, columns, most):
    monkeypatch.setenv("COLUMNS", columns)
    told = ledgerops("state", run)
    assert (told.code, "12k" in told.out) == (0, True)
    assert max(map(len, told.lines)) <= most


def test_a_run_is_one_document(run, ledgerops):
    told = ledgerops("state", run / "checkpoints", "--json")

    assert told.code == 0
    assert [job["job"] for job in told.document["jobs"]] == ["daily_counts", "large_credits", "sums"]
    [operator] = told.document["jobs"][0]["operators"]
    assert (operator["rows"], operator["rows_batch"], operator["bytes"], operator["stores"]) == (12_345, 2, 60, None)
    assert told.document["jobs"][0]["kept"] == {"first": 0, "last": 2, "batches": 3}


def test_a_damaged_checkpoint_does_not_hide_the_others(run, ledgerops):
    (run / "checkpoints" / "sums" / "state" / "0" / "1" / "3.changelog").unlink()
    told = ledgerops("state", run, "--json")
    errors = {job["job"]: job["error"] for job in told.document["jobs"]}
    assert (told.code, errors["daily_counts"], "is incomplete" in errors["sums"]) == (0, None, True)


def test_the_folder_of_several_runs_is_not_one(run, refused):
    assert refused(run.parent) == f"{run.parent} contains several runs; give one of them: default"


REFUSED = {
    "--operator 4": "no operator 4 in {path}; there are 0",
    "--batch 9": "no state of batch 9 in {path}; it has batches 0 to 2",
    "--store left": "no store 'left' in {path}; there are default",
    "--batch new": "argument --batch: not a whole number: 'new'; see ledgerops state --help",
    "--top -1": "argument --top: not a whole number: '-1'; see ledgerops state --help",
}


@pytest.mark.parametrize(("options", "said"), REFUSED.items(), ids=REFUSED)
def test_what_is_not_there_is_refused_before_spark_starts(run, refused, options, said):
    path = run / "checkpoints" / "daily_counts"
    assert refused(path, *options.split()) == said.format(path=path)


def test_the_pyspark_that_is_imported_counts_whatever_pip_has_recorded(run, refused, monkeypatch):
    monkeypatch.setattr("pyspark.__version__", "3.5.7")
    said = "reading state needs pyspark 4.0 or later, this is 3.5.7"
    assert refused(run / "checkpoints" / "daily_counts") == said


def test_a_checkpoint_is_named_as_spark_names_it(run, ledgerops):
    told = ledgerops("state", f"file:{run}", "--json")
    assert (told.code, told.document["run"]) == (0, str(run))


@pytest.mark.parametrize("address", ["s3a://bucket/q", "hdfs://name:9000/q", "dbfs:/checkpoints/q"])
def test_an_object_store_is_refused_with_what_to_do(refused, address):
    assert refused(address) == (
        f"argument CHECKPOINT: not a folder: {address!r}; an object store must be mounted, at the same path on every "
        "machine; see ledgerops state --help"
    )


def test_no_folder_no_checkpoint_and_temporary_checkpoints_of_others_are_told_apart_from_a_run(tmp_path, refused):
    no_checkpoint = f"{tmp_path} is not a checkpoint (it has no offsets and metadata)"
    assert refused(tmp_path / "absent") == f"no such folder: {tmp_path / 'absent'}"
    assert refused(tmp_path).startswith(no_checkpoint)

    checkpoint(tmp_path / "temporary-1914a555-b66e-44eb-b20c-b913c157e524")
    assert refused(tmp_path).startswith(no_checkpoint)


def test_a_run_before_its_first_batch_is_told_from_a_folder_that_is_no_run(tmp_path, refused):
    (tmp_path / "run.json").write_text("{}")
    assert refused(tmp_path).startswith(f"no job of the run in {tmp_path} has begun a batch")

    (job := tmp_path / "checkpoints" / "daily_counts").mkdir(parents=True)
    (job / "metadata").write_text("{}")
    assert refused(tmp_path).startswith(f"no job of the run in {tmp_path} has begun a batch")
    assert refused(job).startswith(f"{job} has no committed batch yet")


STORE = {
    "store": "default", "folder": "default", "kind": "store", "ttl": False, "counted": True, "rows": 0,
    "key": [{"name": "customer_id", "type": "string"}], "value": [{"name": "count", "type": "bigint"}],
    "partitions": [{"partition": 0, "rows": 0}],
    "keys": None, "skew": None, "timers": None, "growth": None, "top": None, "sample": None,
}  # fmt: skip


def drawn(**store):
    """The lines of a document's store."""
    operator = {"operator": 0, "name": "stateStoreSave", "partitions": 1, "format": 2, "rows": 1, "bytes": 10}
    document = {
        "checkpoint": "/data/q", "batch": 5, "provider": "rocksdb", "kept": {"first": 0, "last": 5, "batches": 6},
        "operators": [{**operator, "files": [], "stores": [STORE | store]}],
    }  # fmt: skip
    console = Console(width=80, color_system=None)
    with console.capture() as caught:
        options = console.options.update(width=80)
        console.print(*StateText(document).__rich_console__(console, options), sep="\n")
    return caught.get().splitlines()[6:]


def test_of_many_partitions_the_largest_are_drawn_in_their_order():
    partitions = [{"partition": number, "rows": 10 + number} for number in range(200)]
    partitions[3]["rows"] = 1000
    lines = drawn(rows=21_000, partitions=partitions, skew=9.1)

    bars = [line for line in lines if "█" in line]
    assert [line.removeprefix("    rows").split()[0] for line in bars] == ["3", *map(str, range(189, 200))]
    assert (bars[0].count("█"), bars[1].count("█")) == (24, 5)
    assert "           188 more with 10 to 198 rows each" in lines


def test_an_empty_store_has_no_bars():
    assert not any(line.startswith("    rows") for line in drawn())


def test_growth_is_told_in_words_and_over_several_batches_as_a_line():
    batches = [{"batch": number, "rows": number * 1000} for number in range(4)]
    grown = {"since": 0, "until": 3, "source": "changes", "added": 3500, "removed": 500, "batches": batches}
    words = "    growth ▁▃▅█ 0 at batch 0, 3,000 at batch 3: 3,500 added, 500 removed"
    assert words in drawn(rows=3000, growth=grown)


def test_growth_of_which_only_the_ends_are_known_is_a_difference():
    batches = [{"batch": 2, "rows": 900}, {"batch": 5, "rows": 100}]
    grown = {"since": 2, "until": 5, "source": "counts", "added": None, "removed": None, "batches": batches}
    assert "    growth 900 at batch 2, 100 at batch 5 (-800)" in drawn(rows=100, growth=grown)


def test_control_characters_of_keys_do_not_reach_the_terminal():
    lines = drawn(rows=1, top=[{"key": {"customer_id": "\x1b[31mred"}, "rows": 1, "bytes": 2}])
    assert any("?[31mred" in line for line in lines)


def test_long_columns_are_folded_and_not_cut():
    lines = drawn(value=[{"name": f"column_{number}", "type": "decimal(18,2)"} for number in range(12)])
    assert max(map(len, lines)) <= 80
    text = " ".join(" ".join(lines).split())
    assert all(f"column_{number} decimal(18,2)" in text for number in range(12))


def test_a_listing_names_what_could_not_be_read():
    console = Console(width=120, color_system=None)
    with console.capture() as caught:
        console.print(ListingText({"jobs": [{"job": "a", "operators": [], "error": "it is broken"}]}))
    assert "a it is broken" in caught.get()


@pytest.mark.parametrize("error", [None, "it is broken"])
def test_a_folder_cannot_send_escape_sequences_to_the_terminal(error):
    operator = {"name": "dedupe\x1b[2J", "partitions": 1, "rows": 1, "rows_batch": 1, "bytes": 1, "files": []}
    job = {"job": "\x1b[2Jevil", "batch": 1, "error": error, "operators": [] if error else [operator]}
    job["operators"] = [{**each, "files": [{"snapshot_age": 1}]} for each in job["operators"]]
    console = Console(width=100, file=io.StringIO())
    console.print(ListingText({"jobs": [job]}))

    shown = console.file.getvalue()
    assert "evil" in shown and "\x1b" not in shown
