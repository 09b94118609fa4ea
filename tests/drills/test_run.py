"""One drill from its start to its end, with an application that needs no Spark."""

import json
import threading

import psutil
import pytest

from ledgerops.common.shutdown import Stop
from ledgerops.drills.harness.case import Case
from ledgerops.drills.harness.run import run
from ledgerops.errors import UserError

# it plans a batch every 0.2 s, and notes what it is told by the outside
APPLICATION = """
import json, os, time
from pathlib import Path

for folder in ("offsets", "commits"):
    Path("checkpoints/orders", folder).mkdir(parents=True)
Path("checkpoints/orders/metadata").touch()
Path("pid").write_text(str(os.getpid()))
batch = 0
while not Path("stop").exists():
    for folder in ("offsets", "commits"):
        Path("checkpoints/orders", folder, str(batch)).touch()
    with Path("seen.jsonl").open("a") as log:
        log.write(Path(os.environ["OUTSIDE"]).read_text().replace("\\n", "") + "\\n")
    batch += 1
    time.sleep(0.2)
"""


@pytest.fixture
def case(tmp_path):
    (tmp_path / "orders.py").write_text(APPLICATION)
    return Case(
        name="slow-sink-1", kind="slow-sink", app=str(tmp_path / "orders"), source="files", trigger=2.0, onset="later",
        onset_seconds=1.0, control={"load": {"rate": 100}}, changes=((1.0, {"sink": 3.5}),), expected=("slow-sink",),
        seconds=2.5,
    )  # fmt: skip


def test_a_drill_leaves_its_truth_and_what_happened(tmp_path, case):
    bundle = run(case, tmp_path / "run")

    folder = bundle.folder
    seen = [json.loads(line).get("sink") for line in (folder / "seen.jsonl").read_text().splitlines()]
    assert Case.load(folder) == case
    assert bundle.times["origin"] + 1.0 <= bundle.times["injected"] < bundle.times["ended"]
    assert set(seen) == {None, 3.5}
    assert seen[0] is None
    assert any((folder / "input").glob("part-*.json"))
    assert not psutil.pid_exists(int((folder / "pid").read_text()))


def test_an_application_that_does_not_start_is_told_with_its_log(tmp_path, case):
    (tmp_path / "orders.py").write_text("raise SystemExit('no such topic')")

    with pytest.raises(UserError, match=r"drill slow-sink-1: the application ended; see .*/run/app\.log"):
        run(case, tmp_path / "run")
    assert "no such topic" in (tmp_path / "run" / "app.log").read_text()


def test_a_drill_that_is_stopped_ends_its_application(tmp_path, case):
    stop = Stop()
    threading.Timer(0.5, stop.ask, ("stopped by its user",)).start()

    with pytest.raises(UserError, match="drill slow-sink-1: stopped by its user"):
        run(case, tmp_path / "run", stop=stop)
    left = [process.info["cmdline"] or () for process in psutil.process_iter(["cmdline"])]
    assert not any(str(tmp_path / "orders.py") in words for words in left)
