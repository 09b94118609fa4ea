"""`ledgerops verify`: where it looks, what it prints, and that it never passes what it could not see."""

import json
import re

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from ledgerops.cli import main
from ledgerops.common.kafka import reach
from ledgerops.errors import UserError
from ledgerops.ledger.plan.arrow import TRANSACTIONS
from ledgerops.ledger.plan.encode import json_values
from ledgerops.ledger.plan.record_stream import ReplayStream
from ledgerops.ledger.verify.outputs import KafkaOutput, PostgresOutput
from tests import topics
from tests.ledger.verify.made import Run, again, manifest_of, sent, without

ONCE = sent(once=True)


@pytest.fixture(autouse=True)
def no_data(monkeypatch):
    monkeypatch.delenv("LEDGEROPS_DATA", raising=False)


def verify(capsys, *argv):
    code = main(["verify", *map(str, argv)])
    told = capsys.readouterr()
    return code, told.out, told.err.strip()


def test_a_run_that_holds_is_a_table_and_exit_0(tmp_path, capsys):
    Run(tmp_path).write("dedup_transactions", ONCE).write("my_own_job", ONCE)
    code, out, err = verify(capsys, tmp_path)

    assert (code, err) == (0, "")
    rows = f"{ONCE.num_rows:,}"
    assert [re.sub(r"  +", " | ", line) for line in out.splitlines()] == [
        "job | rows | lost | repeated | changed | money | verdict",
        f"dedup_transactions | {rows} | 0 | 0 | 0 | equal | holds",
        f"my_own_job | {rows} | – | – | – | – | not checked",
        " | verify has no expectation for this job",
    ]


def test_a_run_that_lost_a_row_is_exit_1_and_names_it(tmp_path, capsys):
    Run(tmp_path).write("dedup_transactions", without(ONCE, 5))
    code, out, _ = verify(capsys, tmp_path, "--json")
    document = json.loads(out)
    [result] = document["results"]

    assert (code, document["version"], result["verdict"], result["lost"]) == (1, 1, "broken", 1)
    assert result["examples"] == {"lost": [ONCE["transaction_id"][5].as_py()]}


def test_only_the_jobs_that_were_asked_for_are_checked(tmp_path, capsys):
    Run(tmp_path).write("dedup_transactions", ONCE).write("account_lookup", ONCE)
    code, out, _ = verify(capsys, tmp_path, "--jobs", "dedup_transactions", "--json")

    assert (code, [result["job"] for result in json.loads(out)["results"]]) == (0, ["dedup_transactions"])


def test_a_run_of_unknown_jobs_alone_is_not_passed(tmp_path, capsys):
    Run(tmp_path).write("my_own_job", ONCE)
    code, _, err = verify(capsys, tmp_path)

    assert (code, err) == (2, "ledgerops: no job could be checked; see the reasons above")


def test_a_replay_is_compared_with_its_file(tmp_path, capsys, data_dir):
    stream = ReplayStream(data_dir / "transactions.csv", 1.0)
    (tmp_path / "run.json").write_text('{"source": "replay"}')
    run = Run(tmp_path).write("dedup_transactions", pa.Table.from_batches([stream.rows(0, 49_102).batch]))
    (run.folder / "manifest.json").unlink()

    assert verify(capsys, tmp_path, "--data", data_dir)[0] == 0


def test_the_manifest_of_the_last_load_stands_beside_the_run(tmp_path, capsys):
    (tmp_path / "kafka").mkdir()
    run = Run(tmp_path / "kafka").write("dedup_transactions", ONCE)
    (run.folder / "manifest.json").rename(tmp_path / "manifest.json")
    (tmp_path / "kafka" / "run.json").write_text('{"source": "kafka"}')

    assert verify(capsys, tmp_path / "kafka")[0] == 0


def test_the_manifest_beside_a_run_of_the_embedded_source_is_another_runs(tmp_path, capsys):
    (tmp_path / "default").mkdir()
    run = Run(tmp_path / "default").write("dedup_transactions", ONCE)
    (run.folder / "manifest.json").rename(tmp_path / "manifest.json")
    (tmp_path / "default" / "run.json").write_text('{"source": "embedded"}')

    assert verify(capsys, tmp_path / "default") == (
        2,
        "",
        f"ledgerops: no manifest in {tmp_path}/default, so there is nothing to compare with; give --manifest FILE",
    )


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        pytest.param([], "no output given; give the folder of a run, --bootstrap-servers or --postgres", id="nothing"),
        pytest.param(["{}/none"], "no run at {}/none; give the folder of a run, such as runs/default", id="no run"),
        pytest.param(
            ["{}/empty"],
            "no output in {}/empty; for a run that wrote to Kafka or Postgres add --bootstrap-servers or --postgres",
            id="no output",
        ),
        pytest.param(["{}", "--jobs", "account_lookup"], "no output of account_lookup found", id="another job"),
        pytest.param(
            ["{}", "--manifest", "{}/no.json"],
            "cannot read {}/no.json: no such file or directory; give --manifest",
            id="no manifest",
        ),
        pytest.param(
            ["{}", "--bootstrap-servers", "127.0.0.1:1"],
            "cannot reach Kafka at 127.0.0.1:1: connection refused",
            id="no broker",
        ),
    ],
)
def test_what_cannot_be_looked_at_is_exit_2(tmp_path, capsys, argv, message):
    Run(tmp_path).write("dedup_transactions", ONCE.slice(0, 10))
    (tmp_path / "empty").mkdir()
    code, out, err = verify(capsys, *(each.format(tmp_path) for each in argv))

    assert (code, out, err) == (2, "", f"ledgerops: {message.format(tmp_path)}")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"exact": False},
            "the manifest is of a load with rejected records, so it is not known what arrived; repeat the load",
        ),
        ({"table": "debits"}, "the manifest is of debits; verify needs one of transactions"),
    ],
    ids=["not exact", "another table"],
)
def test_a_manifest_that_does_not_tell_is_refused(tmp_path, capsys, changes, message):
    Run(tmp_path, manifest_of(**changes)).write("dedup_transactions", ONCE)

    assert verify(capsys, tmp_path) == (2, "", f"ledgerops: {message}")


def test_a_damaged_output_is_told(tmp_path, capsys):
    run = Run(tmp_path).write("dedup_transactions", ONCE)
    (run.folder / "output" / "dedup_transactions" / "part-1.parquet").write_bytes(b"PAR1")
    code, _, err = verify(capsys, tmp_path)

    assert code == 2
    assert err.startswith(f"ledgerops: cannot read {tmp_path}/output/dedup_transactions/part-1.parquet: ")


@pytest.fixture
def in_kafka(kafka, topic):
    """Writes a table to a new topic as Spark's sink would; gives the arguments that find it."""

    def write(table, job="dedup_transactions"):
        prefix = f"{topic}."
        topics.make(reach(kafka.client), NewTopic(prefix + job, 3, 1))
        producer = Producer({"bootstrap.servers": kafka.servers})
        for batch in table.cast(TRANSACTIONS).to_batches():
            for value in json_values(batch).to_pylist():
                producer.produce(prefix + job, value)
        assert producer.flush(30) == 0
        return ["--bootstrap-servers", kafka.servers, "--topic-prefix", prefix]

    return write


def test_topics_are_outputs_too(tmp_path, capsys, in_kafka):
    manifest_of().write(tmp_path / "m.json")
    argv = ["--manifest", tmp_path / "m.json", *in_kafka(ONCE)]
    code, out, _ = verify(capsys, *argv, "--json")

    assert (code, json.loads(out)["results"][0]["money"]) == (0, "equal")


def test_kafka_may_repeat_rows_unless_that_is_strictly_forbidden(tmp_path, capsys, in_kafka):
    manifest_of().write(tmp_path / "m.json")
    argv = ["--manifest", tmp_path / "m.json", *in_kafka(again(ONCE, 3, 4))]
    code, out, _ = verify(capsys, *argv)

    assert (code, "2 repeated (allowed by the sink: at least once)" in out) == (0, True)
    assert verify(capsys, *argv, "--strict")[0] == 1


def test_kafka_may_not_lose_rows(tmp_path, capsys, in_kafka):
    manifest_of().write(tmp_path / "m.json")

    assert verify(capsys, "--manifest", tmp_path / "m.json", *in_kafka(without(ONCE, 3)))[0] == 1


def test_a_topic_without_records_is_an_output_without_rows(kafka, in_kafka):
    prefix = in_kafka(ONCE.slice(0, 0))[-1]

    assert KafkaOutput(kafka.client, {f"{prefix}dedup_transactions": 3}).rows == 0


@pytest.fixture
def in_postgres(postgres):
    """Writes a table to Postgres; gives the URL."""
    import psycopg

    with psycopg.connect(postgres.url) as connection:
        connection.execute("DROP TABLE IF EXISTS dedup_transactions")
        connection.execute(
            "CREATE TABLE dedup_transactions (transaction_id text, account_id text, customer_id text, event_time "
            "timestamptz, type text, operation text, amount numeric(18,2), balance numeric(18,2))"
        )

    def write(table):
        with (
            psycopg.connect(postgres.url) as connection,
            connection.cursor() as cursor,
            cursor.copy("COPY dedup_transactions FROM STDIN") as copy,
        ):
            for row in table.to_pylist():
                copy.write_row(list(row.values()))
        return postgres.url

    yield write
    with psycopg.connect(postgres.url) as connection:
        connection.execute("DROP TABLE dedup_transactions")


def test_tables_are_outputs_too(tmp_path, capsys, in_postgres):
    manifest_of().write(tmp_path / "m.json")
    url = in_postgres(ONCE)

    assert verify(capsys, "--manifest", tmp_path / "m.json", "--postgres", url)[0] == 0
    in_postgres(ONCE.slice(0, 1))
    assert verify(capsys, "--manifest", tmp_path / "m.json", "--postgres", url)[0] == 1


def test_a_table_that_may_not_be_read_is_one_line(tmp_path, capsys, postgres, in_postgres):
    import psycopg

    manifest_of().write(tmp_path / "m.json")
    in_postgres(ONCE.slice(0, 1))
    with psycopg.connect(postgres.url) as connection:
        connection.execute("DROP ROLE IF EXISTS stranger")
        connection.execute("CREATE ROLE stranger LOGIN")
    url = postgres.url.replace("//ledger@", "//stranger@")

    assert verify(capsys, "--manifest", tmp_path / "m.json", "--postgres", url) == (
        2,
        "",
        "ledgerops: cannot read table dedup_transactions of --postgres: permission denied for table dedup_transactions",
    )


def test_names_of_jobs_may_stand_apart(tmp_path, capsys):
    Run(tmp_path).write("dedup_transactions", ONCE).write("account_lookup", sent())

    assert verify(capsys, tmp_path, "--jobs", "dedup_transactions, account_lookup")[0] == 0


def test_an_unreachable_database_is_told_without_its_password(tmp_path):
    with pytest.raises(UserError) as caught:
        PostgresOutput("postgresql://me:hunter2@127.0.0.1:1/ledger", ["x"])

    assert str(caught.value).startswith("cannot reach the Postgres of --postgres: ")
    assert "hunter2" not in str(caught.value)


def test_what_is_no_url_of_a_database_is_not_quoted():
    with pytest.raises(UserError) as caught:
        PostgresOutput("postgresql://me:hunter2@[::1/ledger", ["x"])

    assert str(caught.value) == "not the URL of a database; write postgresql://user:password@host:port/database"
