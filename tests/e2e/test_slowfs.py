import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.spark

# a session of its own: a class path cannot be added to one that runs
SCRIPT = """
import json, sys, time
from pathlib import Path
from pyspark.sql import SparkSession
from ledgerops.drills.harness.slowfs import SlowFiles

folder = Path(sys.argv[1])
files = SlowFiles(folder / "files")
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
for key, value in {**files.conf, "spark.sql.shuffle.partitions": "1"}.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
files.install(spark)
query = (
    spark.readStream.format("rate").option("rowsPerSecond", 10).load().groupBy("value").count()
    .writeStream.outputMode("update").format("noop")
    .option("checkpointLocation", files.location(folder / "checkpoint"))
    .trigger(processingTime="200 milliseconds").start()
)

def next_whole_batch():
    # the one that runs now began before
    wanted = (query.lastProgress["batchId"] if query.lastProgress else 0) + 2
    while query.isActive and (query.lastProgress is None or query.lastProgress["batchId"] < wanted):
        time.sleep(0.02)
    found = query.lastProgress
    [state] = found["stateOperators"]
    return {"log": found["durationMs"]["walCommit"], "state": state["commitTimeMs"]}

def quickest(log, state):
    # a busy machine makes a batch slower, never quicker: the first that is as quick as that, or the last of twenty
    least = {"log": 1e9, "state": 1e9}
    for _ in range(20):
        found = next_whole_batch()
        least = {key: min(found[key], least[key]) for key in found}
        if found["log"] < log and found["state"] < state:
            break
    return {"least": least, "quickest": found}

told = {"quick": quickest(400, 400)}
files.slow(0.4)
told["slow"] = quickest(1600, 1600)
files.slow(0.4, within="/state/")
told["state"] = quickest(400, 1600)
files.heal()
told["healed"] = quickest(400, 400)
query.stop()
Path(sys.argv[2]).write_text(json.dumps(told))
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What one query went through while its checkpoint was slow, and quick again."""
    folder = tmp_path_factory.mktemp("slowfs")
    subprocess.run([sys.executable, "-c", SCRIPT, folder, folder / "told.json"], check=True, timeout=280)
    return json.loads((folder / "told.json").read_text())


def test_each_file_of_the_checkpoint_is_made_and_renamed_slowly(told):
    assert told["quick"]["quickest"]["log"] < 400
    assert 800 <= told["slow"]["least"]["log"] <= told["slow"]["quickest"]["log"] < 1600
    # the file was made before the commit began
    assert 400 <= told["slow"]["least"]["state"] <= told["slow"]["quickest"]["state"] < 1600


def test_only_the_files_in_a_place_can_be_slow(told):
    assert told["state"]["quickest"]["log"] < 400
    assert 400 <= told["state"]["least"]["state"] <= told["state"]["quickest"]["state"] < 1600


def test_it_is_quick_again_at_once(told):
    assert max(told["healed"]["quickest"].values()) < 400
