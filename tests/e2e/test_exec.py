"""`ledgerops exec` with a script that makes a session of its own."""

import zipfile
from pathlib import Path

import pyspark
import pytest

import ledgerops
from ledgerops.servers.process import free_port
from tests.programs import finished, for_spark, python

SCRIPT = """
import sys, time, urllib.request
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[2]").appName("billing").config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("OFF")
query = spark.readStream.format("rate").load().writeStream.format("noop").queryName("unaware").start()
text = ""
while not ('ledgerops_batches_total{query="unaware",' in text and "ledgerops_executor_cores" in text):
    time.sleep(0.1)
    text = urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/metrics").read().decode()
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


SUBMITTED = """
import sys
from pyspark.sql import SparkSession
import shipped

spark = SparkSession.builder.getOrCreate()
print("name", __name__, sys.argv[1:], shipped.NAME, spark.sparkContext.appName)
spark.stop()
"""


def test_the_launcher_takes_the_place_of_the_application_under_spark_submit(tmp_path):
    (tmp_path / "app.py").write_text(SUBMITTED)
    with zipfile.ZipFile(tmp_path / "lib.zip", "w") as library:
        library.writestr("shipped.py", "NAME = 'from the archive'")
    home = Path(pyspark.__file__).parent
    launcher = Path(ledgerops.__file__).parent / "__main__.py"
    options = ["--master", "local[1]", "--name", "billing", "--py-files", "lib.zip", "--conf", "spark.ui.enabled=false"]
    command = [home / "bin/spark-submit", *options, launcher, "exec", "app.py", "--more"]
    done = finished(*command, cwd=tmp_path, timeout=300, env=for_spark(SPARK_HOME=str(home), LEDGEROPS_PORT="0"))

    assert done.returncode == 0, done.stderr
    assert "name __main__ ['--more'] from the archive billing" in done.stdout
    assert "ledgerops: attached, metrics at http://127.0.0.1:" in done.stdout  # spark-submit merges both of Python's
