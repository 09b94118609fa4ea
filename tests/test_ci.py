"""The script of the build machine, with stand-ins for the programs that it starts."""

import os
import shutil
import subprocess

import pytest
import yaml

from tests.paths import ROOT

PARTS = ["lint", "test", "e2e", "docs"]


@pytest.fixture
def checkout(tmp_path):
    """A folder with the script, and programs that note their last argument; `make` fails for what `failing` names."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    for name in ("sudo", "apt-get"):
        (programs / name).write_text("#!/bin/sh\n")
    (programs / "make").write_text('#!/bin/sh\necho "$2" >> made\ncase " $FAILING " in *" $2 "*) exit 1;; esac\n')
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "ledgerops").write_text("#!/bin/sh\n")
    for file in (*programs.iterdir(), tmp_path / ".venv" / "bin" / "ledgerops"):
        file.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize(
    ("failing", "code", "told"), [("", 0, ""), ("lint", 1, "failed: lint\n"), ("test docs", 1, "failed: test docs\n")]
)
def test_each_part_runs_in_any_case_and_one_that_fails_fails_the_run(checkout, failing, code, told):
    environ = {**os.environ, "PATH": f"{checkout / 'bin'}:{os.environ['PATH']}", "FAILING": failing}
    done = subprocess.run([checkout / ".ci" / "run"], env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (code, told)
    assert (checkout / "made").read_text().split() == [".venv/ready", *PARTS]


def test_each_part_is_a_target_of_the_makefile():
    done = subprocess.run(["make", "--dry-run", *PARTS], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "ruff check" in done.stdout and "mypy" in done.stdout and "mkdocs build --strict" in done.stdout


def test_github_runs_the_same_script():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8"))
    [job] = workflow["jobs"].values()
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]
