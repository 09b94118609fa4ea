"""The wheel in an environment that has nothing else: what an application that only attaches installs."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import py4j
import pyspark
import pytest

from ledgerops.cli import COMMANDS
from tests.paths import RECORDED, ROOT
from tests.programs import finished
from tests.tables import cases

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

MOST_MEGABYTES = 10  # what the wheel and its dependencies take on disk
APPLICATION = """
import sys, time, urllib.request
from pyspark.sql import SparkSession
import ledgerops

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
watch = ledgerops.attach(spark, port=0)
rows = spark.readStream.format("rate").load()
query = rows.writeStream.format("noop").queryName("bare").trigger(processingTime="1 second").start()
end = time.monotonic() + 120
while not any(each["batch"] for each in watch.status()["queries"]):
    assert time.monotonic() < end and watch.error is None, watch.error
    time.sleep(0.1)
text = urllib.request.urlopen(watch.url + "/metrics").read().decode()
print("batches" if "ledgerops_batches_total" in text else "no batches", watch.diagnose()["queries"][0]["query"])
query.stop(), watch.close(), spark.stop()
"""


@pytest.fixture(scope="module")
def pip(tmp_path_factory: pytest.TempPathFactory) -> list[str | Path]:
    """A pip that stands beside what it installs."""
    folder = tmp_path_factory.mktemp("pip")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    return [folder / "bin/python", "-m", "pip", "--quiet", "--disable-pip-version-check"]


@pytest.fixture(scope="module")
def wheel(pip: list[str | Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy: a build leaves files beside its sources."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / "ledgerops", folder / "ledgerops", ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", folder / "dist", folder], check=True)
    [built] = (folder / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def bare(pip: list[str | Path], wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The binaries of an environment with the wheel and what it depends on, and nothing else."""
    folder = tmp_path_factory.mktemp("bare") / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    subprocess.run([*pip, "--python", folder / "bin/python", "install", wheel], check=True)
    return folder / "bin"


def run(bare: Path, *argv: str | Path) -> subprocess.CompletedProcess[str]:
    """The installed command, outside the checkout."""
    return finished(bare / "ledgerops", *argv, cwd=bare)


def test_it_installs_little(bare):
    [packages] = bare.parent.glob("lib/python*/site-packages")
    files = [file for file in packages.rglob("*") if file.is_file() and file.suffix != ".pyc"]
    assert sum(file.stat().st_size for file in files) < MOST_MEGABYTES * 1_000_000
    assert not (packages / "ledgerops" / "drills").exists()


@pytest.mark.parametrize("command", COMMANDS, ids=[command.name for command in COMMANDS])
def test_every_command_prints_its_help(bare, command):
    done = run(bare, *command.name.split(), "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"usage: ledgerops {command.name}" in done.stdout


@cases(
    "argv, line",
    ("ledger", ["jobs"], "ledgerops jobs: needs pyarrow; pip install 'ledgerops[ledger]'"),
    ("load", ["load", "default"], "ledgerops load: needs numpy; pip install 'ledgerops[load]'"),
    ("render", ["render"], "ledgerops render: needs PyYAML; pip install 'ledgerops[render]'"),
    ("cli", ["completion", "bash"], "ledgerops completion: needs shtab; pip install 'ledgerops[cli]'"),
    ("notify", ["notify", "--send", "slack://x"], "ledgerops notify: needs apprise; pip install 'ledgerops[notify]'"),
    (
        "a command of a checkout",
        ["drill", "--list"],
        "ledgerops drill: needs a checkout of the repository; the installed package does not include drills",
    ),
    ("Spark itself", ["exec", "app.py"], "ledgerops: no pyspark in this environment; pip install pyspark"),
)
def test_a_command_whose_extra_is_missing_says_which(bare, argv, line):
    (bare / "app.py").touch()
    done = run(bare, *argv)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"{line}\n")


def test_a_recording_is_diagnosed(bare, tmp_path):
    import zstandard

    for file in (RECORDED / "drills" / "overload" / "recording").iterdir():
        with file.open("rb") as packed:
            plain = zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True).read()
        (tmp_path / file.name.removesuffix(".zst")).write_bytes(plain)

    done = run(bare, "diagnose", "--from", tmp_path, "--since", "1h")

    assert (done.returncode, done.stderr) == (1, "")
    assert "input-overload" in done.stdout


def test_an_application_with_spark_alone_is_watched(bare, tmp_path):
    for package in (pyspark, py4j):
        (tmp_path / package.__name__).symlink_to(Path(package.__file__).parent)
    (tmp_path / "app.py").write_text(APPLICATION)

    environ = {**os.environ, "PYTHONPATH": str(tmp_path), "PYSPARK_PYTHON": str(bare / "python")}
    done = finished(bare / "python", tmp_path / "app.py", env=environ)

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "batches bare"
