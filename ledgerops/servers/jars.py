"""The jars that the ledger's real components need: Spark's Kafka connector, the Postgres driver, Delta, a Kafka broker.

`ivy.xml` beside this module names them, `jars.sha256` says what they hold. Ivy, which comes inside pyspark, fetches
them once into a folder of this user's; afterwards no network is needed. Their hashes are checked at each use.
"""

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.resources import files
from pathlib import Path

from ledgerops.errors import UserError, cannot_read, os_reason
from ledgerops.servers import ivy

FOLDER = "LEDGEROPS_JARS"
CONNECTOR, DELTA, BROKER = "connector", "delta", "broker"
Retrieve = Callable[[str, Sequence[str], Path, Path | None, Callable[[str], None]], None]
_UNFINISHED = "unfinished-"  # folders of processes that were killed; whoever holds the lock may remove them


def jars_folder() -> Path:
    """Where the jars of this version's `ivy.xml` are, or will be."""
    return _root() / hashlib.sha256(_text("ivy.xml").encode()).hexdigest()[:12]


def hashes() -> dict[str, str]:
    """SHA-256 by kind and name, such as "broker/name.jar"."""
    lines = _text("jars.sha256").splitlines()
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines)}


def fetch(
    settings: Path | None = None,
    say: Callable[[str], None] = lambda line: None,
    retrieve: Retrieve = ivy.retrieve,
) -> bool:
    """Fetches the jars if they are not there, and checks every one; whether they came now.

    `settings` is an ivysettings.xml, for networks that reach repositories through a mirror; `say` is called with each
    line that Ivy prints. Several processes may call it at once: one fetches, the others wait. Raises UserError for no
    Java, no network, a folder that cannot be written, or a jar that is not the one that was tried.
    """
    folder = jars_folder()
    if folder.is_dir():
        check(folder)
        return False
    with _lock(folder.parent, say):
        if folder.is_dir():  # another process was quicker
            check(folder)
            return False
        for left in folder.parent.glob(f"{_UNFINISHED}*"):
            shutil.rmtree(left, ignore_errors=True)
        work = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=folder.parent))
        try:
            retrieve(_text("ivy.xml"), (CONNECTOR, DELTA, BROKER), work, settings, say)
            check(work / "jars")
            (work / "jars").rename(folder)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return True


def check(folder: Path, kind: str = "") -> None:
    """Compares every jar of a kind with its hash; UserError for the first that is missing or differs."""
    remedy = f"remove {folder} and run ledgerops jars" if folder == jars_folder() else "nothing was kept"
    for name, expected in hashes().items():
        if not name.startswith(kind):
            continue
        try:
            with (folder / name).open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except FileNotFoundError:
            raise UserError(f"the jar {name} is missing in {folder}; {remedy}") from None
        except OSError as error:
            raise cannot_read(folder / name, error) from None
        if found != expected:
            raise UserError(f"the jar {name} is not the tested one (sha256 {found[:12]}...); {remedy}")


def _present(kind: str) -> list[Path]:
    """The jars of a kind. Raises UserError when they were not fetched, or were changed."""
    folder = jars_folder()
    jars = [folder / name for name in hashes() if name.startswith(f"{kind}/")]
    if not all(jar.is_file() for jar in jars):
        raise UserError(f"the {kind} jars are not in {folder}; run ledgerops jars to download them")
    check(folder, f"{kind}/")  # a tenth of a second: what runs is what was tested
    return jars


# what Spark needs for Kafka and Postgres, and for Delta tables; the class path of a Kafka broker and its tools
connector_jars, delta_jars, broker_jars = (partial(_present, kind) for kind in (CONNECTOR, DELTA, BROKER))


def _root() -> Path:
    own = os.environ.get(FOLDER)
    if own:
        return Path(own).absolute()
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "ledgerops" / "jars"


@contextmanager
def _lock(root: Path, say: Callable[[str], None]) -> Iterator[None]:
    """One process at a time; the lock ends with its process, however that ends."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=root).close()
        handle = (root / "lock").open("w")
    except OSError as error:
        reason = os_reason(error)
        raise UserError(f"cannot write {root}: {reason}; set {FOLDER} to a writable folder") from None
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            say("waiting for another ledgerops that downloads them")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _text(name: str) -> str:
    return files("ledgerops.servers").joinpath(name).read_text("utf-8")
