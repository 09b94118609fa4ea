"""A Spark master other than this machine: what is checked before a job starts, so that no output is lost unnoticed.

Executors write output and state themselves. On a folder that they do not share with the driver Spark reports success,
and commits the checkpoint of rows that nobody will find.
"""

import re
import socket
import uuid
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as Late
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

from ledgerops.errors import UserError, os_reason
from ledgerops.input_files import text_of
from ledgerops.ledger.run.failures import first_line

CONNECT_SECONDS = 5.0  # for each address of a master
TASK_SECONDS = 120.0  # in which an executor must have taken the tasks of the check: a cluster may have to start one
MAX_TASKS = 64
IMPORTS = ("ledgerops", "orjson", "pyarrow", "pandas")  # of what the jobs run in Python workers
DEFAULT_PORTS = {"spark": 7077, "https": 443, "http": 80}


def is_remote(master: str | None) -> bool:
    """Whether tasks may run on another machine than this one."""
    return master is not None and not master.startswith("local")


def read_properties(file: Path) -> dict[str, str]:
    """Spark's properties in a file, a name and a value on each line, as spark-submit reads it. Raises UserError."""
    found = {}
    for number, line in enumerate(map(str.strip, text_of(file).splitlines()), 1):
        if not line or line.startswith("#"):
            continue
        name, value = [*re.split(r"\s*[=\s]\s*", line, maxsplit=1), ""][:2]
        if not name.startswith("spark.") or not value:
            raise UserError(f"{file}:{number}: not a Spark property: {line[:60]!r}; write spark.NAME VALUE")
        found[name] = value
    return found


def check_master(master: str) -> None:
    """Raises UserError where no address of a standalone or Kubernetes master accepts a connection.

    Spark itself would try for a minute and end with a page of Java's frames.
    """
    reasons = []
    for host, port in _addresses(master):
        try:
            socket.create_connection((host, port), timeout=CONNECT_SECONDS).close()
            return
        except OSError as error:
            reasons.append(f"{host}:{port}: {os_reason(error)}")
    if reasons:
        raise UserError(f"cannot reach the Spark master {master} ({'; '.join(reasons)}); is it running?")


def _addresses(master: str) -> Iterator[tuple[str, int]]:
    scheme, _, rest = master.partition("://")
    if scheme not in ("spark", "k8s"):
        return
    for each in rest.split(","):
        try:
            address = urlsplit(each if "://" in each else f"{'https' if scheme == 'k8s' else 'spark'}://{each}")
            host, port = address.hostname, address.port or DEFAULT_PORTS.get(address.scheme, 443)
        except ValueError:
            host, port = None, 0
        if not host or not port:
            raise UserError(f"not a Spark master: {master}; write spark://HOST:PORT or k8s://https://HOST:PORT")
        yield host, port


def check_file_system(spark: SparkSession, folder: Path) -> None:
    """Raises UserError where Spark takes a path without a scheme, as those in `folder`, for one of another file system.

    It would write output and checkpoints there and report success, while nothing of it is in the folder.
    """
    default = str(spark.sparkContext._jsc.hadoopConfiguration().get("fs.defaultFS") or "file:///")
    if not default.startswith("file:"):
        raise UserError(
            f"Spark's default file system is {default}, so output and checkpoints would not be in {folder}; add "
            "--conf spark.hadoop.fs.defaultFS=file:///"
        )


def check_executors(spark: SparkSession, folder: Path, imports: Collection[str] = IMPORTS) -> None:
    """Raises UserError where an executor's tasks do not write to the driver's `folder`, or lack what the jobs import.

    Runs one small job. Each of its tasks writes a file that the driver must find.
    """
    try:
        found = _ask(spark, folder, tuple(imports))
    except Late:
        spark.sparkContext.cancelAllJobs()
        raise UserError(
            f"no executor took a task within {TASK_SECONDS:.0f} s; check on the master's page that workers have free "
            "cores and memory, and that they can reach this driver (spark.driver.host)"
        ) from None
    except Exception as error:  # py4j's, PySpark's (another version of Python, say): a page long
        raise UserError(f"executors cannot run Python tasks: {one_line(str(error))}; see --executor-python") from None
    for each in found:
        where = f"executors on {each['host']}"
        if each["missing"]:
            raise UserError(
                f"{where} cannot import {', '.join(each['missing'])} with {each['python']}; install "
                "ledgerops[ledger] there, or give --executor-python another interpreter"
            )
        if each["problem"] or not (folder / each["file"]).is_file():
            why = each["problem"] or "a file written there is not here"
            raise UserError(
                f"{where} do not share {folder} with this driver ({why}), so output and state would be lost; give "
                "--out a folder that is mounted at the same path on every machine"
            )
    for each in found:
        (folder / each["file"]).unlink(missing_ok=True)


def _ask(spark: SparkSession, folder: Path, imports: tuple[str, ...]) -> list[Mapping[str, Any]]:
    """What one task on each core says of its machine. Raises Late, and what Spark raises."""
    mark, path = uuid.uuid4().hex[:12], str(folder)

    def look(parts: Any) -> Any:  # sent by value: an executor may have no ledgerops to import it from
        import importlib.util
        import socket
        import sys
        from pathlib import Path

        for part in parts:
            name, problem = f".probe-{mark}-{part}", None
            try:
                Path(path, name).touch()
            except OSError as error:
                problem = (error.strerror or str(error)).lower()
            yield {
                "host": socket.gethostname(),
                "python": sys.executable,
                "missing": [each for each in imports if importlib.util.find_spec(each) is None],
                "file": name,
                "problem": problem,
            }

    context = spark.sparkContext
    tasks = min(MAX_TASKS, max(2, context.defaultParallelism))
    pool = ThreadPoolExecutor(1, thread_name_prefix="ledgerops-check")
    try:
        asked = pool.submit(lambda: context.parallelize(range(tasks), tasks).mapPartitions(look).collect())
        return list(asked.result(timeout=TASK_SECONDS))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def one_line(error: str) -> str:
    """What a Java or Python traceback comes to, in one line of at most 300 characters."""
    lines = [line.strip() for line in error.splitlines()]
    said = [line for line in lines if re.search(r"\[[A-Z_]{6,}\]|No such file|Caused by:|Cannot run program", line)]
    line = said[-1].removeprefix("Caused by: ") if said else first_line(error)
    return re.sub(r"^(?:[\w$]+\.)+\w+: ", "", line)[:300].rstrip(".")
