"""`ledgerops verify`: where it looks, what it prints, and that it never passes what it could not see."""

import json
import re
from functools import partial

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from ledgerops.common.kafka import reach
from ledgerops.ledger.plan.arrow import TRANSACTIONS
from ledgerops.ledger.plan.encode import json_values
from ledgerops.ledger.plan.record_stream import ReplayStream
from ledgerops.ledger.verify.outputs import KafkaOutput, PostgresOutput
from tests import topics
from tests.ledger.verify.made import Run, again, manifest_of, sent, without
from tests.refusals import refusal_of
from tests.tables import cases

ONCE = sent(once=True)


@pytest.fixture(autouse=True)
def no_data(monkeypatch):
    monkeypatch.delenv("LEDGEROPS_DATA", raising=False)


@pytest.fixture
def verify(ledgerops):
    return partial(ledgerops, "verify")


@pytest.fixture
def manifest(tmp_path):
    """The options that name the manifest of what was sent."""
    manifest_of().write(tmp_path / "m.json")
    return ["--manifest", tmp_path / "m.json"]


def test_a_run_that_holds_is_a_table_and_exit_0(tmp_path, verify):
    Run(tmp_path).write("dedup_transactions", ONCE).write("my_own_job", ONCE)
    told = verify(tmp_path)

    assert (told.code, told.err) == (0, "")
    rows = f"{ONCE.num_rows:,}"
    assert [re.sub(r"  +", " | ", line) for line in told.lines] == [
        f"compared with {tmp_path / 'manifest.json'}",
        "job | rows | lost | repeated | changed | money | verdict",
        f"dedup_transactions | {rows} | 0 | 0 | 0 | equal | holds",
        f"my_own_job | {rows} | – | – | – | – | not checked",
        " | verify has no expectation for this job",
    ]


def test_a_run_that_lost_a_row_is_exit_1_and_names_it(tmp_path, verify):
    Run(tmp_path).write("dedup_transactions", without(ONCE, 5))
    told = verify(tmp_path, "--json")
    [result] = told.document["results"]

    assert (told.code, told.document["version"], result["verdict"], result["lost"]) == (1, 1, "broken", 1)
    assert told.document["compared_with"] == str(tmp_path / "manifest.json")
    assert result["examples"] == {"lost": [ONCE["transaction_id"][5].as_py()]}


@pytest.mark.parametrize("jobs", [["dedup_transactions"], ["dedup_transactions", "account_lookup"]], ids=len)
def test_only_the_jobs_that_were_asked_for_are_checked(tmp_path, verify, jobs):
    Run(tmp_path).write("dedup_transactions", ONCE).write("account_lookup", sent()).write("large_credits", ONCE)
    told = verify(tmp_path, "--jobs", ", ".join(jobs), "--json")
    assert (told.code, sorted(each["job"] for each in told.document["results"])) == (0, sorted(jobs))


def test_a_run_of_unknown_jobs_alone_is_not_passed(tmp_path, verify):
    Run(tmp_path).write("my_own_job", ONCE)
    told = verify(tmp_path)
    assert (told.code, told.err) == (2, "ledgerops: no job could be checked; see the reasons above\n")


def test_a_replay_is_compared_with_its_file(tmp_path, verify, data_dir):
    stream = ReplayStream(data_dir / "transactions.csv", 1.0)
    (tmp_path / "run.json").write_text('{"source": "replay"}')
    run = Run(tmp_path).write("dedup_transactions", pa.Table.from_batches([stream.rows(0, 49_102).batch]))
    (run.folder / "manifest.json").unlink()

    assert verify(tmp_path, "--data", data_dir).code == 0


@pytest.fixture
def run_of(tmp_path):
    """Makes a run of this source with the manifest of a load beside it, which was sent to `topic`."""

    def make(source, topics=(), topic="transactions"):
        (tmp_path / "run").mkdir()
        run = Run(tmp_path / "run", manifest_of(topic=topic)).write("dedup_transactions", ONCE)
        (run.folder / "manifest.json").rename(tmp_path / "manifest.json")
        note = {"source": source, "topics": dict.fromkeys(topics, "an id")}
        (run.folder / "run.json").write_text(json.dumps(note))
        return run.folder

    return make


@cases(
    "run",
    ("its topic", ("kafka", ["transactions", "ad_events"])),
    ("a part of the topics", ("kafka", ["transactions.debits", "transactions.credits"])),
    ("of a prefix", ("kafka", ["test.transactions"], "test.transactions")),
    ("a folder", ("files", [], None)),
)
def test_the_manifest_of_the_last_load_stands_beside_the_run(tmp_path, verify, run_of, run):
    told = verify(run_of(*run))
    assert (told.code, told.lines[0]) == (0, f"compared with {tmp_path / 'manifest.json'}")


@cases(
    "run",
    ("it reads no load", ("embedded",)),
    ("another prefix", ("kafka", ["transactions"], "test.transactions")),
    ("none of its prefix", ("kafka", ["test.transactions"])),
    ("a load to a folder", ("kafka", ["transactions"], None)),
    ("a load to Kafka", ("files",)),
)
def test_the_manifest_of_a_load_that_the_run_did_not_read_is_not_taken(refusal, run_of, run):
    assert refusal("verify", folder := run_of(*run)) == (
        f"no manifest in {folder}, so there is nothing to compare with; give --manifest FILE"
    )


REFUSED = {
    "": "no output given; give the folder of a run, --bootstrap-servers or --postgres",
    "none": "no run at none; give the folder of a run, such as runs/default",
    "empty": "no output in empty; for a run that wrote to Kafka or Postgres add --bootstrap-servers or --postgres",
    ". --jobs account_lookup": "no output of account_lookup found",
    ". --manifest no.json": "cannot read no.json: no such file or directory; give --manifest",
    ". --bootstrap-servers 127.0.0.1:1": "cannot reach Kafka at 127.0.0.1:1: connection refused",
}


@pytest.mark.parametrize(("argv", "message"), REFUSED.items(), ids=REFUSED)
def test_what_cannot_be_looked_at_is_refused(tmp_path, refusal, argv, message):
    Run(tmp_path).write("dedup_transactions", ONCE.slice(0, 10))
    (tmp_path / "empty").mkdir()
    assert refusal("verify", *argv.split()) == message


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"exact": False}, "of a load with rejected records, so it is not known what arrived; repeat the load"),
        ({"table": "debits"}, "of debits; verify needs one of transactions"),
    ],
    ids=["not exact", "another table"],
)
def test_a_manifest_that_does_not_tell_is_refused(tmp_path, refusal, changes, message):
    Run(tmp_path, manifest_of(**changes)).write("dedup_transactions", ONCE)
    assert refusal("verify", tmp_path) == f"the manifest is {message}"


def test_a_damaged_output_is_told(tmp_path, refusal):
    run = Run(tmp_path).write("dedup_transactions", ONCE)
    damaged = run.folder / "output" / "dedup_transactions" / "part-1.parquet"
    damaged.write_bytes(b"PAR1")
    assert refusal("verify", tmp_path).startswith(f"cannot read {damaged}: ")


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


@cases(
    "rows, options, code, word",
    ("topics are outputs too", ONCE, [], 0, " equal "),
    ("repeated", again(ONCE, 3, 4), [], 0, "2 repeated (allowed by the sink: at least once)"),
    ("repeated, which is forbidden", again(ONCE, 3, 4), ["--strict"], 1, "dedup_transactions"),
    ("lost", without(ONCE, 3), [], 1, "dedup_transactions"),
)
def test_topics_may_repeat_rows_and_not_lose_them(verify, manifest, in_kafka, rows, options, code, word):
    told = verify(*manifest, *in_kafka(rows), *options)
    assert (told.code, word in told.out) == (code, True)


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


def test_tables_are_outputs_too(verify, manifest, in_postgres):
    assert verify(*manifest, "--postgres", in_postgres(ONCE)).code == 0
    assert verify(*manifest, "--postgres", in_postgres(ONCE.slice(0, 1))).code == 1


def test_a_table_that_may_not_be_read_is_one_line(refusal, manifest, postgres, in_postgres):
    import psycopg

    in_postgres(ONCE.slice(0, 1))
    with psycopg.connect(postgres.url) as connection:
        connection.execute("DROP ROLE IF EXISTS stranger")
        connection.execute("CREATE ROLE stranger LOGIN")
    url = postgres.url.replace("//ledger@", "//stranger@")

    assert refusal("verify", *manifest, "--postgres", url) == (
        "cannot read table dedup_transactions of --postgres: permission denied for table dedup_transactions"
    )


def test_an_unreachable_database_is_told_without_its_password(tmp_path):
    line = refusal_of(PostgresOutput, "postgresql://me:hunter2@127.0.0.1:1/ledger", ["x"])

    assert line.startswith("cannot reach the Postgres of --postgres: ")
    assert "hunter2" not in line


def test_what_is_no_url_of_a_database_is_not_quoted():
    assert refusal_of(PostgresOutput, "postgresql://me:hunter2@[::1/ledger", ["x"]) == (
        "not the URL of a database; write postgresql://user:password@host:port/database"
    )
