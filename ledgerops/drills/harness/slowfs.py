"""A file system for checkpoints that can be made slow while a query runs: slow:///folder is the local folder.

Spark has no such thing, so a small Java class adds it to Hadoop's file systems. It is compiled by Janino, which Spark
brings along, in the driver's own JVM: no Java compiler is needed. What it does to each file that is made or renamed
is read from a control file at every call, so it can be changed from any process.
"""

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from ledgerops.common.files import write_text

CLASS = "ledgerops.drills.SlowFileSystem"


class SlowFiles:
    """The file system with its class and its control file below `folder`.

    Start the session with `conf`, call `install` once it is there, and give queries `location(folder)` as their
    checkpoint. From then on `slow` and `heal` control what happens to their files.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self.control = self.folder / "control"
        self._classes = self.folder / "classes"
        # a class path remembers which of its folders are absent
        self._classes.mkdir(parents=True, exist_ok=True)

    @property
    def conf(self) -> Mapping[str, str]:
        """Of the Spark session, before it starts: a JVM's class path is fixed by then."""
        return {
            "spark.driver.extraClassPath": str(self._classes),
            "spark.executor.extraClassPath": str(self._classes),
            "spark.hadoop.fs.slow.impl": CLASS,
            "spark.hadoop.fs.slow.control": str(self.control),
        }

    def install(self, spark: SparkSession) -> None:
        """Compiles the class where the JVM of `spark` looks for it."""
        target = self._classes / f"{CLASS.replace('.', '/')}.class"
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            jvm: Any = spark.sparkContext._jvm
            compiler = jvm.org.codehaus.janino.SimpleCompiler()
            compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
            compiler.cook((files("ledgerops.drills.harness") / "slowfs.java").read_text("utf-8"))
            target.write_bytes(compiler.getBytecodes()[CLASS])

    def location(self, folder: Path) -> str:
        """The folder as a checkpoint's location."""
        return f"slow://{folder.absolute()}"

    def slow(self, seconds: float, within: str = "") -> None:
        """Each file that is made or renamed takes so much longer; a checkpoint's files are both made and renamed. With
        `within` only files with this in their path, such as "/state/"."""
        write_text(self.control, f"{round(seconds * 1000)} {within}")  # a reader sees the old text or the new one

    def heal(self) -> None:
        """Makes it as fast as the local disk again."""
        self.control.unlink(missing_ok=True)
