"""Runs Ivy, which comes with pyspark, to download jars and all that they need."""

import re
import subprocess
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from threading import Timer

from ledgerops.errors import UserError
from ledgerops.servers.java import java_home

MIRROR = "behind a mirror, give its ivysettings.xml with --settings FILE"
MAX_DOWNLOAD_SECONDS = 900.0  # it takes 40 s on a good line


def retrieve(
    description: str, confs: Sequence[str], work: Path, settings: Path | None, say: Callable[[str], None]
) -> None:
    """Puts the jars of each configuration of an ivy.xml (given as text) into `work`/jars/CONFIGURATION. Everything that
    Ivy keeps for itself goes into `work` too. Raises UserError with the first thing that went wrong."""
    if settings is not None and not settings.is_file():
        raise UserError(f"no Ivy settings at {settings}; --settings takes the path of an ivysettings.xml")
    java, program = java_home() / "bin" / "java", _program()
    (work / "ivy.xml").write_text(description, "utf-8")
    command: list[str | Path] = [java, f"-Divy.default.ivy.user.dir={work / 'user'}", "-jar", program]
    command += ["-ivy", work / "ivy.xml", "-cache", work / "cache", "-types", "jar", "bundle"]
    command += ["-retrieve", f"{work}/jars/[conf]/[artifact]-[revision].[ext]"]
    command += ["-settings", settings] if settings else []
    command += ["-confs", *confs]
    lines: list[str] = []
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        assert process.stdout
        limit = Timer(MAX_DOWNLOAD_SECONDS, process.kill)
        limit.start()
        try:
            for line in process.stdout:
                lines.append(line.strip())
                say(line.strip())
        except BaseException:
            process.kill()
            raise
        finally:
            limit.cancel()
    if process.returncode:
        raise UserError(f"cannot download the jars: {problem(lines)}")


def problem(lines: Sequence[str]) -> str:
    """The line of Ivy's output that explains most."""
    text = "\n".join(lines)
    if found := re.search(r"Server access error at url (\w+://[^/\s]+)\S* \(\S+: (.*)\)", text):
        return f"{found[1]} cannot be reached ({_lower(found[2])}); {MIRROR}"
    if found := re.search(r"module not found: (\S+)", text):
        return f"no repository has {found[1]}; {MIRROR}"
    if found := re.search(r"(?m)\[FAILED +\] (.*?)( \(\d+ms\))?$", text):
        return f"download failed: {found[1]}"
    messages = [line for line in lines if line and not line.startswith(("at ", "... ", "::"))]
    return _lower(messages[-1]) if messages else f"Ivy took more than {MAX_DOWNLOAD_SECONDS:.0f} s, or was killed"


def _program() -> Path:
    spec = find_spec("pyspark")
    places = spec.submodule_search_locations if spec else None
    for place in places or ():
        for jar in sorted(Path(place, "jars").glob("ivy-*.jar")):
            return jar
    raise UserError(
        "Ivy comes with pyspark, which is not installed; install the ledger: pip install 'ledgerops[ledger]'"
    )


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
