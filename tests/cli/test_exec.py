"""What a script sees under `ledgerops exec`, and how it ends, compared with the same script under python."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from ledgerops.cli import main
from tests.paths import ROOT

REPORT = """
import atexit, json, multiprocessing, os, pickle, signal, sys, threading

class Row:
    pass

def child(queue):
    queue.put([__name__, __file__, sys.argv, Row.__module__])

def seen():
    import __main__
    found = {
        "file": __file__, "name": __name__, "argv": sys.argv, "path": sys.path, "folder": os.getcwd(),
        "names": sorted(globals()), "spec": __spec__, "package": __package__, "doc": __doc__, "cached": __cached__,
        "loader": [type(__loader__).__name__, __loader__.name, __loader__.path],
        "main": [__main__.__file__, __main__.__dict__ is globals(), pickle.loads(pickle.dumps(Row())).__class__ is Row],
        "signals": [str(signal.getsignal(each)) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)],
        "streams": [[each.errors, each.encoding, each.line_buffering] for each in (sys.stdin, sys.stdout, sys.stderr)],
        "hooks": [sys.excepthook is sys.__excepthook__, threading.excepthook is threading.__excepthook__],
        "threads": threading.active_count(), "annotations": globals().get("__annotations__"),
    }
    return json.dumps(found, indent=1)

if __name__ == "__main__":
    print(seen())
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=child, args=(queue,))
    process.start()
    print(queue.get(timeout=60))
    process.join()
    print(process.exitcode)
    atexit.register(lambda: print("at exit", sys.modules["__main__"].__dict__ is globals(), Row.__module__))
"""
ENDINGS = {
    "to its end": "print('done')",
    "with an exit code": "import sys; sys.exit(7)",
    "with a message": "import sys; sys.exit('no input')",
    "without a word": "import os; os._exit(5)",
    "with an error": "def f(x):\n    return 1 / x\n\nf(0)",
    "with an error of another": "try:\n    {}['a']\nexcept KeyError as e:\n    raise ValueError(1) from e",
    "with an error of its syntax": "print(1)\nprint(",
    "with a module that is missing": "import no_such_module",
    "with a hook of its own": "import sys\nsys.excepthook = lambda *a: print('hook', a[0], a[2].tb_lineno)\n1 / 0",
    "with an error in its handler": "import atexit\natexit.register(lambda: 1 / 0)\nprint('end')",
    "with an error of a thread": "from threading import Thread\nt = Thread(target=lambda: 1 / 0)\nt.start()\nt.join()",
    "interrupted": "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nimport time\ntime.sleep(60)",
    "terminated": "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\nimport time\ntime.sleep(60)",
    "with a closed output": "import os, sys\nos.close(1)\nprint('x')\nsys.stdout.flush()",
    "with a sign that the output lacks": "print('\\udcff')",
    "with an error of ours": "from ledgerops.errors import UserError\nraise UserError('bad')",
}


class Ended(NamedTuple):
    code: int
    out: str
    err: str


def ended(folder: Path, *command: str | Path) -> Ended:
    """How python with these arguments ended, without the addresses of objects."""
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, encoding="utf-8", errors="backslashreplace", cwd=folder,
        timeout=120, stdin=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    return Ended(done.returncode, done.stdout, re.sub("at 0x[0-9a-f]+", "at 0x", done.stderr))


def both(folder: Path, script: str, *own: str) -> tuple[Ended, Ended]:
    """The script under python, and under `ledgerops exec`."""
    return ended(folder, script, *own), ended(folder, "-m", "ledgerops", "exec", script, *own)


@pytest.mark.parametrize("script", ["app.py", "jobs/app.py", "./jobs/../jobs/app.py", "link.py", "two words.py"])
def test_a_script_sees_the_same_as_under_python(tmp_path, script):
    (tmp_path / "jobs").mkdir()
    for file in ("jobs/app.py", "app.py", "two words.py"):
        (tmp_path / file).write_text(REPORT)
    (tmp_path / "link.py").symlink_to("jobs/app.py")
    plain, watched = both(tmp_path, script, "--input", "-h", "a b")

    assert plain.out.rstrip().endswith("at exit True __main__")
    assert watched == plain


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_script_ends_the_same_as_under_python(tmp_path, ending):
    (tmp_path / "app.py").write_text(ENDINGS[ending])
    plain, watched = both(tmp_path, "app.py")
    assert watched == plain


def test_an_exit_code_is_known_at_the_exit_as_an_exception_is(tmp_path):
    shown = "import atexit, sys\nfrom ledgerops.agent.application_error import application_error\n"
    (tmp_path / "app.py").write_text(f"{shown}atexit.register(lambda: print(application_error()))\nsys.exit(3)")
    plain, watched = both(tmp_path, "app.py")
    assert (plain.code, plain.out, watched.code, watched.out) == (3, "None\n", 3, "exit code 3\n")


def test_a_module_beside_the_script_is_found_and_the_observer_in_no_traceback(tmp_path):
    (tmp_path / "beside.py").write_text("def fail():\n    raise ValueError('beside')\n")
    (tmp_path / "app.py").write_text("import beside\nbeside.fail()\n")
    plain, watched = both(tmp_path, "app.py")

    assert watched.err == plain.err
    assert "beside.py" in plain.err and "ledgerops" not in watched.err.replace(str(tmp_path), "")


def test_a_session_that_cannot_be_made_shows_no_frame_of_the_observer(tmp_path):
    (tmp_path / "app.py").write_text(
        "from pyspark.sql import SparkSession\n"
        "SparkSession.Builder._lock = None\n"  # the first thing that the builder needs
        "SparkSession.builder.getOrCreate()\n"
    )
    plain, watched = both(tmp_path, "app.py")

    assert plain.code == 1 and "getOrCreate" in plain.err
    assert watched == plain


def test_the_launcher_is_a_file_that_runs_the_command_from_any_folder(tmp_path, capsys):
    with pytest.raises(SystemExit) as told:
        main(["exec", "--launcher"])
    launcher = capsys.readouterr().out.strip()

    assert told.value.code == 0
    assert ended(tmp_path, launcher, "exec", "absent.py") == (
        *(2, "", "ledgerops: no such script: absent.py; give a Python file\n"),
    )
