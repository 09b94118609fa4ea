"""Fixtures that every test may use."""

from __future__ import annotations

import logging
import os
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from ledgerops.cli import main
from ledgerops.common.kafka import reach
from ledgerops.errors import UserError
from ledgerops.servers import jars
from ledgerops.servers.java import SHORT_LIVED
from ledgerops.servers.kafka import Kafka
from tests import sharing, topics
from tests.certificates import Issued, authority
from tests.notify.receiver import Receiver
from tests.paths import ROOT
from tests.postgres import Postgres, binaries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from xdist.workermanage import WorkerController

MakeTopic = Callable[..., str]

# how long an example takes is the machine's affair: Hypothesis would fail one that takes 200 ms
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

# A JVM of a test lives for some minutes and would spend a third of its CPU on Java's second compiler, which pays off
# later, and some of it on collecting garbage beside the work: with a test process for each core, there is no core left.
os.environ.setdefault("SPARK_SUBMIT_OPTS", SHORT_LIVED)
os.environ.setdefault("KAFKA_OPTS", SHORT_LIVED)

# promtool spends a third of its CPU on collecting garbage that it need not: each run ends after seconds
os.environ.setdefault("GOGC", "800")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder with the real customers, accounts and transactions."""
    folder = Path(os.environ.get("LEDGEROPS_DATA") or ROOT.parent / "shared" / "data")
    if not (folder / "transactions.csv").is_file():
        reason = "the real bank data is absent: set LEDGEROPS_DATA to its folder"
        assert not os.environ.get("LEDGEROPS_REQUIRE_DATA"), reason
        pytest.skip(reason)
    return folder


@pytest.fixture(scope="session")
def server_jars() -> list[Path]:
    """The jars for Spark, fetched when they are not there; without a network the test is skipped."""
    try:
        jars.fetch()
    except UserError as error:
        _absent(error)
    return jars.connector_jars()


@pytest.fixture(scope="session")
def kafka(server_jars: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """One real broker a test run. A test that stops or kills it starts one of its own instead."""
    with Kafka(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    """One real Postgres a test run; a test makes a schema or tables of its own."""
    try:
        binaries()
    except UserError as error:
        _absent(error)
    with Postgres(tmp_path_factory.mktemp("postgres")) as server:
        yield server


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A webhook that keeps what it is sent."""
    made = Receiver()
    yield made
    made.close()


@pytest.fixture
def refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs a command line in this process, in an empty folder and without the variables of this machine; it must end
    with exit code 2 and nothing printed but one line of error: that line, without the name of the program."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("LEDGEROPS_")]:
        monkeypatch.delenv(name)

    def line(*argv: object) -> str:
        assert main([str(each) for each in argv]) == 2
        told = capsys.readouterr()
        assert told.out == ""
        assert told.err.count("\n") == 1
        return told.err.strip().removeprefix("ledgerops: ")

    return line


@pytest.fixture
def warned(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """What ledgerops logs from warnings on."""
    caplog.set_level(logging.WARNING, "ledgerops")
    return caplog


@pytest.fixture
def ca(tmp_path: Path) -> Issued:
    return authority(tmp_path)


@pytest.fixture
def make_topic(kafka: Kafka) -> MakeTopic:
    """Makes a topic of a new name on the broker: `make_topic(partitions=5, **{"cleanup.policy": "compact"})`."""
    from confluent_kafka.admin import NewTopic

    admin = reach(kafka.client)

    def make(partitions: int = 5, **config: str) -> str:
        name = f"topic-{uuid.uuid4().hex[:12]}"
        topics.make(admin, NewTopic(name, partitions, 1, config=config))
        return name

    return make


@pytest.fixture
def topic(make_topic: MakeTopic) -> str:
    """A new topic of five partitions."""
    return make_topic()


def _absent(error: UserError) -> None:
    if os.environ.get("LEDGEROPS_REQUIRE_SERVERS") == "1":
        pytest.fail(f"{error}; LEDGEROPS_REQUIRE_SERVERS=1 asks for it")
    pytest.skip(str(error))


def _connector() -> str:
    """The value of spark.jars: empty where the jars cannot be had, so that tests without Kafka still run."""
    with suppress(UserError):
        jars.fetch()
        return ",".join(map(str, jars.connector_jars()))
    assert os.environ.get("LEDGEROPS_REQUIRE_SERVERS") != "1", "the jars are absent: ledgerops jars"
    return ""


# What saves the shared session CPU and changes no result; JVMs that e2e tests start have none of it. Hadoop starts
# chmod for each local file that it makes: for checkpoints half as often without files of checksums (HDFS and S3 have
# none), and at less cost without a helper process. Java reserves only 48 MB for compiled code where its second
# compiler is off, collects all garbage whenever Spark's classes outgrow a threshold of 21 MB, and begins with a heap
# whose room for new objects, 100 MB, lasts for a second.
SHARED_SESSION: dict[str, Any] = {
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
    "spark.driver.extraJavaOptions": "-XX:ReservedCodeCacheSize=256m -XX:MetaspaceSize=512m -Xms1536m -Xmn1g"
    + (" -Djdk.lang.Process.launchMechanism=VFORK" if sys.platform == "linux" else ""),
}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One session a test run: two cores, two shuffle partitions, UTC, UI on a free port, Kafka where it can be had."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    usual = {"spark.sql.shuffle.partitions": "2", "spark.sql.session.timeZone": "UTC", "spark.driver.memory": "2g"}
    usual |= {"spark.ui.port": "0", "spark.ui.showConsoleProgress": "false", "spark.jars": _connector()}
    usual["spark.sql.warehouse.dir"] = str(tmp_path_factory.mktemp("warehouse"))
    builder = SparkSession.builder.master("local[2]").appName("ledgerops-tests")
    session = builder.config(map=usual | SHARED_SESSION).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


SERVERS = {"spark", "kafka", "postgres", "server_jars"}  # fixtures whose users are worth beginning with


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """What `-n logical` stands for."""
    return sharing.WITH_SERVERS + 1


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerController) -> None:
    sharing.ask(node)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> sharing.ServersFirst | None:
    return sharing.ServersFirst(config, log) if config.getoption("dist") == "loadscope" else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A test that uses the shared JVM or broker bears the mark `spark` whether it is written there or not.

    Modules with such tests come first: where several processes share the tests, the many short modules then fill what
    the few long ones leave.
    """
    heavy = set()
    for item in items:
        used = SERVERS & set(getattr(item, "fixturenames", ()))
        if used - {"postgres"}:
            item.add_marker(pytest.mark.spark)
        if used or item.get_closest_marker("spark"):
            heavy.add(item.path)
    items.sort(key=lambda item: item.path not in heavy)
    sharing.answer(config, sorted({item.nodeid.partition("::")[0] for item in items if item.path in heavy}))
