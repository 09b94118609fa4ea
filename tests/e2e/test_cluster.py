"""Three jobs from Kafka on a standalone cluster, of which a worker and then the driver are killed in mid-batch."""

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime

import pytest

from ledgerops.servers.process import Process, free_port
from tests.e2e.standalone import Cluster
from tests.paths import ROOT
from tests.programs import finished, until
from tests.serving import fetched

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

# with state, without it, and in Python on executors
JOBS = ["dedup_transactions", "large_credits", "masked_transactions"]
RECORDS = 20_000
BATCHES = re.compile(r'^ledgerops_batches_total\{.*query="(\w+)".*\} (\S+)', re.MULTILINE)
GONE = re.compile(r'^ledgerops_executor_active\{.*executor="(\d+)".*\} 0\.0$', re.MULTILINE)
SLOW = 240.0  # seconds for what takes twenty on an idle machine


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster")) as made:
        yield made


def ledgerops(cluster: Cluster, *argv: object) -> subprocess.CompletedProcess[str]:
    return finished(sys.executable, "-m", "ledgerops", *argv, timeout=600, cwd=ROOT, env=cluster.env)


def on_cluster(cluster: Cluster, kafka, topic_prefix: str) -> list[str]:
    small = ["spark.executor.memory=512m", "spark.driver.memory=1g", "spark.executor.extraJavaOptions=-XX:+UseSerialGC"]
    options = [option for setting in small for option in ("--conf", setting)]
    source = ["--source", "kafka", "--bootstrap-servers", kafka.servers, "--topic-prefix", topic_prefix]
    master = ["--master", cluster.master, "--executor-python", str(cluster.python)]
    return ["run", *JOBS, *source, *master, *options, "--trigger", "0", "--start", "earliest", "--no-view"]


def page(port: int, path: str) -> str:
    return fetched(f"http://127.0.0.1:{port}{path}")


def batches(port: int) -> dict[str, float]:
    """Batches by query; none while the driver starts."""
    try:
        text = page(port, "/metrics")
    except OSError:
        return {}
    return {query: float(count) for query, count in BATCHES.findall(text)}


def lost(port: int) -> dict[str, dict]:
    """What the diagnosis of each query says of lost executors."""
    queries = json.loads(page(port, "/diagnosis"))["queries"]
    return {each["query"]: f for each in queries for f in each["findings"] if f["rule"] == "executor-lost"}


def test_a_folder_that_the_executors_do_not_share_is_refused(cluster, kafka):
    prefix = make_prefix(cluster, kafka)
    done = ledgerops(cluster, *on_cluster(cluster, kafka, prefix), "--out", cluster.private / "runs")

    assert done.returncode == 2, done.stderr
    line = done.stderr.splitlines()[-1]
    assert line.startswith("ledgerops: executors on ") and "do not share" in line and "Traceback" not in done.stderr


def test_a_dead_master_is_one_line(cluster, kafka, tmp_path):
    began = time.monotonic()
    dead = f"spark://127.0.0.1:{free_port()}"
    done = ledgerops(cluster, "run", "large_credits", "--master", dead, "--out", tmp_path, "--duration", "5")

    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(f"ledgerops: cannot reach the Spark master {dead}")
    assert time.monotonic() - began < SLOW


def make_prefix(cluster: Cluster, kafka) -> str:
    prefix = f"c{free_port()}."
    made = ledgerops(cluster, "topics", "--bootstrap-servers", kafka.servers, "--prefix", prefix)
    assert made.returncode == 0, made.stderr
    return prefix


def test_a_worker_and_the_driver_die_in_mid_batch_and_no_row_is_lost_or_repeated(cluster, kafka, tmp_path):
    prefix, manifest, port = make_prefix(cluster, kafka), tmp_path / "manifest.json", free_port()
    sent = ledgerops(
        cluster, "load", "default", "--bootstrap-servers", kafka.servers, "--topic-prefix", prefix,
        "--records", str(RECORDS), "--at-once", "--manifest", manifest,
    )  # fmt: skip
    assert sent.returncode == 0, sent.stdout + sent.stderr
    command = [*on_cluster(cluster, kafka, prefix), "--out", str(tmp_path / "runs")]
    slowly = [sys.executable, "-m", "ledgerops", *command, "--port", str(port), "--max-rows-per-trigger", "500"]
    environ = {**cluster.env, "LEDGEROPS_HOST_INTERVAL": "2", "LEDGEROPS_APP": "cluster-test"}
    driver = Process("the driver", slowly, tmp_path / "driver.log", cwd=ROOT, env=environ)
    try:
        driver.wait_until(lambda: len(found := batches(port)) == len(JOBS) and min(found.values()) >= 3, SLOW)
        before = batches(port)
        killed = time.time()
        cluster.processes[-1].kill()  # with its executor; batches run back to back, so one was under way
        finding = until(lambda: next(iter(lost(port).values()), None), SLOW, "the lost executor")
        since = datetime.fromisoformat(finding["since"]).timestamp()
        assert killed - 1 <= since <= time.time()
        [gone] = GONE.findall(page(port, "/metrics"))
        assert (where := re.match(rf"{gone} on (\S+): ", finding["component"]["detail"]))
        assert where[1] in finding["remedies"][0]["action"]
        diagnosed = ledgerops(cluster, "diagnose", "--from", f"http://127.0.0.1:{port}", "--fail-on", "critical")
        print(f"the executor was removed after {since - killed:.1f} s:\n{diagnosed.stdout}")
        assert "executor-lost" in diagnosed.stdout and finding["summary"] in diagnosed.stdout, diagnosed.stderr
        assert 'executor="driver"' not in page(port, "/metrics")
        until(lambda: all(count > before[name] + 1 for name, count in batches(port).items()), SLOW, "more batches")
    finally:
        driver.kill()  # batches run back to back: one was under way
    cluster.start_worker("worker-3")
    again = ledgerops(cluster, *command, "--until-caught-up", "--max-rows-per-trigger", "20000", "--port", "0")
    assert again.returncode == 0, again.stdout + again.stderr

    [run] = (tmp_path / "runs").iterdir()
    verified = ledgerops(cluster, "verify", run, "--manifest", manifest)
    print(verified.stdout)
    assert verified.returncode == 0, verified.stdout + verified.stderr
