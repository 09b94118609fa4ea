"""The jobs that there are, how they are chosen, and what a start checks of a checkpoint and an output."""

import importlib

import pytest

from ledgerops.errors import UserError
from ledgerops.ledger.jobs import DEFAULT_JOBS, JOBS, choose_jobs, find_job
from ledgerops.ledger.jobs.large_credits import JOB
from ledgerops.ledger.run.start import start
from ledgerops.ledger.sinks import ParquetSink
from tests.tables import cases


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_a_job_bears_the_name_of_its_module_and_says_what_a_reader_must_know(job):
    module = importlib.import_module(f"ledgerops.ledger.jobs.{job.name}")
    assert module.JOB is job
    for topic in ("Reads `", "writes", "State:", "Watermark:", "Restart:", "Upgrade:"):
        assert topic in module.__doc__, f"{job.name} does not say: {topic}"
    assert job.summary.endswith(".")


def test_jobs_are_chosen_by_name_by_group_all_or_the_tour():
    windows = tuple(job for job in JOBS if job.group == "windows")
    assert find_job("large_credits") is JOB
    assert choose_jobs([]) == DEFAULT_JOBS
    assert choose_jobs(["windows", "large_credits", "daily_counts"]) == (*windows, JOB)
    assert choose_jobs(["all"]) == JOBS


def batches(folder, *numbers):
    folder.mkdir(parents=True)
    for number in numbers:
        (folder / str(number)).write_text("v1\n")
        (folder / f".{number}.crc").write_bytes(b"")


def refusal(checkpoint, output, fingerprint="plan a"):
    """What is said when the checks fail; with `inputs` empty, a start that passes them fails on its missing input."""
    try:
        start(JOB, {}, sink=ParquetSink(output), checkpoint=checkpoint, fingerprint=fingerprint)
    except UserError as error:
        return str(error)
    except KeyError:
        return None


def test_a_new_checkpoint_is_claimed_and_then_known(tmp_path):
    checkpoint, output = tmp_path / "checkpoints" / "large_credits", tmp_path / "output"

    assert refusal(checkpoint, output) is None
    batches(checkpoint / "offsets", 0, 1)
    batches(checkpoint / "commits", 0)
    batches(output / "_spark_metadata", 0)
    assert refusal(checkpoint, output) is None
    assert [file.name for file in checkpoint.parent.iterdir() if file.is_file()] == ["large_credits.job.json"]


def test_a_claim_that_was_never_used_may_change_its_source(tmp_path):
    assert refusal(tmp_path / "checkpoint", tmp_path / "output", "plan a") is None
    assert refusal(tmp_path / "checkpoint", tmp_path / "output", "plan b") is None


OWN = '{"job": "large_credits", "fingerprint": "plan a"}'


# the note beside a checkpoint, the batches planned, committed and written -> what is said
@cases(
    "note, planned, done, written, message",
    ("a checkpoint that ledgerops did not make", None, [0], [0], [0],
     "{c} is the checkpoint of an unknown query, without checkpoint.job.json; choose another folder"),
    ("another job's", OWN.replace("large_credits", "daily_counts"), [0], [0], [0],
     "{c} is the checkpoint of job daily_counts, not large_credits; choose another folder"),
    ("another source's", OWN.replace("plan a", "plan b"), [0], [0], [0],
     "{c} belongs to another source (plan b, now plan a); choose another folder, "
     "or move it and {o} away to start over"),
    ("the checkpoint was deleted, the output not", OWN, [], [], [0],
     "{o} has batches that {c} does not have; move the output away"),
    ("the output was replaced by an older one", OWN, [0, 1, 2], [0, 1], [0],
     "{o} lacks batches that {c} has committed; put the output back, or move the checkpoint away"),
)  # fmt: skip
def test_what_does_not_belong_together_is_refused(tmp_path, note, planned, done, written, message):
    checkpoint, output = tmp_path / "checkpoint", tmp_path / "output"
    if note:
        (tmp_path / "checkpoint.job.json").write_text(note)
    batches(checkpoint / "offsets", *planned)
    batches(checkpoint / "commits", *done)
    batches(output / "_spark_metadata", *written)

    assert refusal(checkpoint, output) == message.format(c=checkpoint, o=output)


def test_a_note_that_cannot_be_read_is_refused(tmp_path):
    (tmp_path / "checkpoint.job.json").write_text("{half")
    assert refusal(tmp_path / "checkpoint", tmp_path / "output").startswith(
        f"cannot read {tmp_path / 'checkpoint.job.json'} ("
    )
