"""The launcher that `spark-submit` takes as its application."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ledgerops.cli import main


def test_the_launcher_is_a_file_that_runs_the_command_from_any_folder(tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["exec", "--launcher"])
    launcher = Path(capsys.readouterr().out.strip())
    done = subprocess.run(
        [sys.executable, launcher, "exec", "absent.py"],
        capture_output=True, text=True, check=False, cwd=tmp_path, timeout=120,
    )  # fmt: skip

    assert ended.value.code == 0
    assert (done.returncode, done.stderr) == (2, "ledgerops: no such script: absent.py; give a Python file\n")
