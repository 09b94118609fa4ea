"""A short run of the fuzzing of files; the long one is `python -m tests.fuzzing.files`."""

import subprocess
import sys

from tests.paths import ROOT


def test_odd_files_are_diagnosed_or_refused_in_little_memory():
    command = [sys.executable, "-m", "tests.fuzzing.files", "--lines", "4000", "--seconds", "60", "--seed", "7"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)

    assert (done.returncode, done.stderr) == (0, "")
