"""`ledgerops exec` with a script that makes a session of its own."""

import pytest

from ledgerops.servers.process import free_port
from tests.agent.test_attach import python

SCRIPT = """
import sys, time, urllib.request
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[2]").appName("billing").config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("OFF")
query = spark.readStream.format("rate").load().writeStream.format("noop").queryName("unaware").start()
found = []
while not found:
    time.sleep(0.1)
    text = urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/metrics").read().decode()
    found = [line for line in text.splitlines() if line.startswith('ledgerops_batches_total{query="unaware",')]
print([line for line in text.splitlines() if line.startswith('ledgerops_query_active{query="unaware",')])
print(__name__, sys.argv[2:])
sys.exit(7)
"""

pytestmark = pytest.mark.spark


def test_a_script_that_knows_nothing_is_watched_and_keeps_its_exit_code(tmp_path):
    script = tmp_path / "app.py"
    script.write_text(SCRIPT)
    port = str(free_port())
    done = python("-m", "ledgerops", "exec", str(script), port, "--more", LEDGEROPS_PORT=port)

    assert done.stdout.splitlines()[-2:] == [
        '[\'ledgerops_query_active{query="unaware",app="billing"} 1.0\']',
        "__main__ ['--more']",
    ]
    assert done.returncode == 7
    assert "py4j" not in done.stderr
    assert f"ledgerops: attached, metrics at http://127.0.0.1:{port}" in done.stderr
    assert "Spark's UI is off" in done.stderr
