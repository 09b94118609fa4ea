"""However a watched driver ends, it ends soon and without a word from ledgerops, and its last records are on disk."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import psutil
import pytest

from ledgerops.model.recording import read
from ledgerops.runtime.replay import Replay
from tests.e2e.shutdown_app import WAYS
from tests.paths import ROOT
from tests.programs import until

pytestmark = pytest.mark.timeout(600)
KILLED = {"sigterm": signal.SIGTERM, "sigkill": signal.SIGKILL}  # before Python could run anything
SIGNALS = {"interrupt": signal.SIGINT, "handler": signal.SIGTERM, **KILLED}
CODES = {"interrupt": 8, "handler": 7, **{way: -number for way, number in KILLED.items()}}  # 0 where none is said
END_SECONDS = 60.0  # a busy machine takes some; a driver that hangs never ends


class Ended(NamedTuple):
    code: int
    seconds: float
    errors: str
    seen: int  # the last batch that the watch had seen
    recorded: int  # the last batch in the recording
    status: str  # that the recording ends with


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """What came of each way; three drivers run at a time."""
    folder = tmp_path_factory.mktemp("endings")
    with ThreadPoolExecutor(3) as pool:
        return dict(zip(WAYS, pool.map(lambda way: end(way, folder / way), WAYS), strict=True))


def end(way, folder):
    environ = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    with (folder.parent / f"{way}.err").open("w+") as errors:
        command = [sys.executable, "-m", "tests.e2e.shutdown_app", way, str(folder)]
        driver = subprocess.Popen(command, cwd=ROOT, env=environ, stdout=subprocess.PIPE, stderr=errors, text=True)
        assert driver.stdout is not None
        told = driver.stdout.readline()
        jvms = psutil.Process(driver.pid).children(recursive=True) if told else []
        began = time.monotonic()
        if told and way in SIGNALS:
            time.sleep(0.3)  # the records of a batch that has ended are flushed twice a second
            driver.send_signal(SIGNALS[way])
        try:
            code = driver.wait(END_SECONDS)
        finally:
            driver.kill()
            driver.stdout.close()
        seconds = time.monotonic() - began
        until(lambda: not any(each.is_running() for each in jvms), END_SECONDS, "the end of the JVM")
        errors.seek(0)
        text = errors.read()
    seen = list(read(folder)) if folder.exists() else []
    batches = [each.data["batchId"] for each in seen if each.kind == "progress"]
    verdicts = [each.status for each in Replay().verdicts(iter(seen))]
    return Ended(code, seconds, text, int(told or -1), max(batches, default=-2), verdicts[-1] if verdicts else "none")


@pytest.mark.parametrize("way", WAYS)
def test_a_driver_ends_with_its_own_exit_code_and_without_a_traceback(ended, way):
    told = ended[way].errors
    assert ended[way].code == CODES.get(way, 0), told[-2000:]
    assert [word for word in ("Traceback", "ledgerops", "Exception ignored") if word in told] == [], told[-2000:]


@pytest.mark.parametrize("way", WAYS)
def test_the_last_batches_are_in_the_recording(ended, way):
    assert 0 <= ended[way].seen <= ended[way].recorded


@pytest.mark.parametrize("way", WAYS)
def test_the_recording_says_that_the_query_stopped_and_not_that_it_failed(ended, way):
    assert (ended[way].status == "stopped") == (way not in KILLED), ended[way]
    assert ended[way].status != "failed"
