"""docs/first-steps.md as its reader goes through it, and the blocks of other pages that need such an application."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import py4j
import pyspark
import pytest

from docs.site.console import blocks, differs, labels
from ledgerops.servers.process import free_port
from tests.e2e.test_bare_install import pip, wheel  # noqa: F401  the fixtures
from tests.paths import ROOT
from tests.programs import finished, until, without_settings

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
PAGE = ROOT / "docs/first-steps.md"
STEPS = [block for block in blocks() if block.kind == "first-steps"]
PATIENCE = 180  # seconds for what takes half a minute on a machine of its own


@pytest.fixture(scope="module")
def binaries(pip, wheel, tmp_path_factory):  # noqa: F811
    """The environment of the reader: the wheel with its extras, and a pyspark that is there already."""
    folder = tmp_path_factory.mktemp("first") / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    subprocess.run([*pip, "--python", folder / "bin/python", "install", f"{wheel}[cli,render]"], check=True)
    [packages] = folder.glob("lib/python*/site-packages")
    for package in (pyspark, py4j):
        (packages / package.__name__).symlink_to(Path(package.__file__).parent)
    return folder / "bin"


class Reader:
    """Types what the page shows, in a folder of its own."""

    def __init__(self, folder, binaries):
        self.folder, self.port = folder, free_port()
        own = {"PATH": f"{binaries}:{os.environ['PATH']}", "PYSPARK_PYTHON": str(binaries / "python")}
        self.env = without_settings(LEDGEROPS_PORT=str(self.port), NO_COLOR="1", **own)
        self.running = []

    def begin(self, *command, **options):
        self.running.append(subprocess.Popen(command, cwd=self.folder, start_new_session=True, **options))

    def types(self, command):
        """Runs a command; one that ends in `&` goes on, and what it has printed so far is returned by `printed`."""
        command = command.replace("9464", str(self.port)).replace("http://driver:", "http://127.0.0.1:")
        command = re.sub(r"^ledgerops diagnose$", f"\\g<0> --from http://127.0.0.1:{self.port}", command)
        command = re.sub(r"^ledgerops status", f"\\g<0> --url http://127.0.0.1:{self.port}", command)
        if not command.endswith("&"):
            done = finished("bash", "-c", command, cwd=self.folder, env=self.env, timeout=PATIENCE)
            assert done.returncode in (0, 1), done.stderr
            return self.shown(done.stdout)
        log = self.folder / "background.log"
        with log.open("wb") as out, (self.folder / "errors.log").open("wb") as errors:
            self.begin("bash", "-c", f"exec {command.removesuffix('&')}", env=self.env, stdout=out, stderr=errors)
        until(lambda: log.stat().st_size > 0, PATIENCE, "the first line of the application")
        return self.shown(log.read_text())

    def shown(self, text):
        return text.replace(str(self.port), "9464").rstrip().split("\n")

    def close(self):
        for process in self.running:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture
def reader(binaries, tmp_path):
    inbox = str(free_port())
    for file in ("orders.py", "inbox.py"):
        (tmp_path / file).write_text((ROOT / "docs/examples" / file).read_text().replace("8085", inbox))
    (tmp_path / "senders.txt").write_text(f"http://127.0.0.1:{inbox}/\n")
    reader = Reader(tmp_path, binaries)
    reader.begin(binaries / "python", "inbox.py", stdout=subprocess.DEVNULL)
    yield reader
    reader.close()


def test_the_steps_print_what_the_page_shows(reader):
    assert len(STEPS) > 4
    for block in STEPS:
        for step in block.steps:
            if step.command.startswith("pip install"):
                continue
            printed = reader.types(step.command)
            # what is shown comes after a batch or two: whoever is too early asks again
            deadline = time.monotonic() + PATIENCE
            while not fits(block, step, printed):
                assert time.monotonic() < deadline, f"{block.place}: {printed}"
                printed = reader.types(step.command)


def fits(block, step, printed):
    """Whether the output has the form that is shown; of a diagnosis, whether it has the cause and the same parts."""
    if cause := block.note.get("until"):
        words = {line.split()[0] for line in printed if line.strip()}
        return cause in "\n".join(printed) and set(labels(step.output)) <= words
    return differs(step.output, printed) is None


def test_the_application_of_the_page_is_the_file_beside_it():
    shown = re.search(r'```python title="orders.py"\n(.*?)```', PAGE.read_text("utf-8"), re.DOTALL)
    assert shown is not None
    assert shown[1] == (ROOT / "docs/examples/orders.py").read_text("utf-8")
