"""Lets Spark's Python processes import ledgerops, and answer Spark in time."""

import os
import sysconfig
from pathlib import Path

from pyspark.sql import SparkSession

import ledgerops

STARTUP = str(Path(__file__).parent / "startup")  # see its sitecustomize


def make_importable(spark: SparkSession) -> None:
    """Workers look for ledgerops where this process found it, too: they do not inherit the driver's sys.path.

    An installed package needs nothing for that. A checkout has to be at the same path on every host; on a cluster,
    install the wheel there instead. Must come before functions are made or data sources registered.
    """
    root = str(Path(ledgerops.__file__).parent.parent)
    context = getattr(spark, "sparkContext", None)  # a Spark Connect session has none: its server needs the package
    if context is None:
        return
    paths = context.environment.get("PYTHONPATH", "").split(os.pathsep)
    wanted = [STARTUP] if root == sysconfig.get_path("purelib") else [STARTUP, root]
    context.environment["PYTHONPATH"] = os.pathsep.join(
        [path for path in wanted if path not in paths] + [path for path in paths if path]
    )
