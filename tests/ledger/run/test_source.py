import pytest

from ledgerops.common.kafka import KafkaClient
from ledgerops.ledger.jobs import choose_jobs, dead_letters, left_out
from ledgerops.ledger.run.source import choose_source
from ledgerops.ledger.sources.kafka import Topics
from tests.refusals import refusal_of


@pytest.fixture
def data(tmp_path):
    (tmp_path / "transactions.csv").write_text("trans_id\n")
    return tmp_path


def test_without_anything_it_is_the_default_plan():
    feed = choose_source(None, environ={})
    assert (feed.kind, feed.title, feed.folder) == ("embedded", "default", "default")
    assert str(feed) == "the embedded source, plan default"


def test_data_make_it_a_replay_and_a_plan_wins_over_them(data):
    environ = {"LEDGEROPS_DATA": str(data)}
    feed = choose_source(None, environ=environ)
    assert (feed.kind, feed.folder, str(feed)) == ("replay", "replay", f"a replay of {data}/transactions.csv")
    assert choose_source(None, plan="whale", environ=environ).kind == "embedded"


def test_a_plan_file_gives_the_folder_its_name(tmp_path):
    file = tmp_path / "my plan.yaml"
    file.write_text("phases:\n  - shape: constant\n    rate: 10\n")
    assert choose_source(None, plan=str(file), environ={}).folder == "my-plan"


def test_another_rate_and_other_rows_are_another_run(data):
    assert choose_source(None, environ={}).digest != choose_source(None, scale=2.0, environ={}).digest
    before = choose_source(None, environ={"LEDGEROPS_DATA": str(data)})
    (data / "transactions.csv").write_text("trans_id\n1\n")
    assert choose_source(None, environ={"LEDGEROPS_DATA": str(data)}).digest != before.digest


def kafka(prefix=""):
    client = KafkaClient("127.0.0.1:9092", {"sasl.mechanism": "PLAIN", "sasl.password": "hush"})
    return choose_source("kafka", environ={}, kafka=Topics(client, prefix))


def test_kafka_is_told_by_its_addresses_and_never_by_its_options():
    feed = kafka("bank.")
    assert str(feed) == "Kafka at 127.0.0.1:9092"
    assert "hush" not in repr(feed) + repr(feed.note(0.0))


@pytest.mark.parametrize(
    ("prefix", "folder"),
    [("", "kafka"), ("bank.", "kafka-bank"), ("eu.test.", "kafka-eu.test"), ("eu.prod.", "kafka-eu.prod")],
)
def test_every_prefix_of_topics_has_a_folder_of_its_own(prefix, folder):
    assert kafka(prefix).folder == folder


def test_a_landing_folder_offers_what_it_has_folders_for(tmp_path):
    (tmp_path / "customers").mkdir()
    feed = choose_source("files", environ={}, landing=tmp_path)

    assert feed.offered == {"customers", "rejects"}
    (tmp_path / "transactions").mkdir()
    assert feed.offered == {"customers", "rejects", "transactions", "debits", "credits"}
    assert str(feed) == f"the landing folder {tmp_path}"


def test_only_sources_of_bytes_offer_rejects_whose_job_is_in_the_tour_there(data):
    assert dead_letters.JOB in choose_jobs([], kafka().offered)
    for feed in (choose_source(None, environ={}), choose_source(None, environ={"LEDGEROPS_DATA": str(data)})):
        assert "rejects" not in feed.offered
        assert dead_letters.JOB not in choose_jobs([], feed.offered)


def test_jobs_that_the_source_cannot_feed_are_left_out_unless_they_are_named():
    some = {"transactions"}
    chosen = choose_jobs(["all"], some)

    assert all(set(job.inputs) <= some for job in chosen)
    assert {job.name for job in chosen} & {"large_credits", "dead_letters"} == {"large_credits"}
    assert dead_letters.JOB in left_out(["all"], some)
    assert left_out(["large_credits"], some) == ()
    wrong = "enriched_transactions reads customers, which the source does not provide"
    assert wrong in refusal_of(choose_jobs, ["enriched_transactions"], some)
    nothing = "none of the jobs can run: the source provides customers"
    assert nothing in refusal_of(choose_jobs, ["windows"], {"customers"})
