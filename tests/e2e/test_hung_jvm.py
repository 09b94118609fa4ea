"""A JVM that hangs does not hold up the end of the observer."""

import pytest

from ledgerops.agent.attach import STOP_SECONDS
from ledgerops.agent.sessions import REMOVE_SECONDS
from tests.programs import python

pytestmark = pytest.mark.timeout(600)
HUNG = """
import os, signal, sys, threading, time
import psutil
from pyspark.sql import SparkSession
import ledgerops

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("OFF")
watch = ledgerops.attach(spark, port=0, host_interval=0.2)
assert watch.port, watch.error
jvms = [each for each in psutil.Process().children(recursive=True) if "java" in each.name()]
assert jvms
for each in jvms:
    each.suspend()
threading.Timer(120.0, lambda: [each.resume() for each in jvms]).start()  # a close that waits for it ends, too late
began = time.monotonic()
watch.close()
print(time.monotonic() - began, flush=True)
for each in jvms:
    each.resume()
spark.stop()
os._exit(0)
"""


def test_closing_a_watch_waits_for_a_jvm_that_hangs_no_longer_than_its_limits():
    done = python("-c", HUNG, timeout=300)

    assert done.returncode == 0, done.stderr[-2000:]
    assert float(done.stdout) < REMOVE_SECONDS + STOP_SECONDS + 60.0, "the JVM answers again after 120 s"
    ours = [line for line in done.stderr.splitlines() if "listener" in line]
    assert ours == ["Spark did not remove the listener within 3 s; not waiting any longer"]
    assert "Traceback" not in done.stderr, done.stderr[-2000:]
