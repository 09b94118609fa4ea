import http.client
import json
import re
import socket
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from ledgerops.agent import exporter as exporter_module
from ledgerops.agent.exporter import LAST_SCRAPE_SECONDS, Exporter
from ledgerops.agent.queue import EventQueue
from ledgerops.agent.worker import Worker
from ledgerops.analysis.inputs import open_source
from ledgerops.cli import main
from ledgerops.common.http import ask
from ledgerops.common.http_handler import Request, takes_gzip
from ledgerops.config import MUTE_HEADER, Config
from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.errors import UserError
from ledgerops.metrics.self_watch import SelfStats
from ledgerops.runtime.exposition import OPENMETRICS, TEXT, accepted, render
from ledgerops.runtime.family import clean_label
from ledgerops.runtime.registry import QueryRegistry
from ledgerops.runtime.snapshot import published
from tests.build import T0, spark_json
from tests.certificates import authority, certificate_of
from tests.programs import needed
from tests.samples import samples
from tests.tables import cases

PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;q=0.4,*/*;q=0.1"
)


class Served:
    """A worker and its exporter on a free port."""

    def __init__(self, clock=time.time, start_worker=True, **settings):
        self.stats = SelfStats()
        self.queue = EventQueue(self.stats)
        config = Config(port=0, **settings)
        self.worker = Worker(self.queue, QueryRegistry(Diagnoser), self.stats, config, clock=clock)
        self.exporter = Exporter(config, self.worker, self.stats, clock=clock)
        self.exporter.start()
        if start_worker:
            self.worker.start()

    def see(self, kind="progress", **changes):
        self.queue.put(kind, json.dumps(spark_json(**changes)))
        self.worker.turn()

    def metrics(self, **headers):
        return self.get("/metrics", **headers)[2].decode()

    def document(self, path):
        return json.loads(self.get(path)[2])

    def get(self, path, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.exporter.port, timeout=60)
        try:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def close(self):
        self.exporter.close()
        self.worker.stop()


@pytest.fixture
def serve():
    with ExitStack() as made:
        yield lambda **options: made.enter_context(closing(Served(**options)))


DAILY_COUNTS = ("query", "daily_counts")


@pytest.fixture
def served(serve):
    """An exporter whose worker took one batch; the test calls further turns."""
    made = serve(start_worker=False)
    made.see()
    return made


def test_the_series_that_were_cut_are_counted_and_the_count_stays_when_the_query_is_forgotten(serve, monkeypatch):
    monkeypatch.setattr("ledgerops.runtime.registry.MAX_ENDED_QUERIES", 0)
    served = serve(start_worker=False, series_per_query=20)
    counts = []
    for changes in ({}, {"batchId": 8}, {"name": "another", "runId": "another-run"}):
        served.see(**changes)
        counts.append(samples(served.metrics())["ledgerops_series_dropped_total", ()])
    cut = served.worker.snapshot.exported["daily_counts"].dropped
    assert cut > 0
    assert counts == [cut, cut, 2 * cut]

    served.queue.put("terminated", json.dumps({"id": "id", "runId": "another-run", "exception": None}))
    served.worker.turn()
    served.see(name="third", runId="third-run")
    counts.append(samples(served.metrics())["ledgerops_series_dropped_total", ()])
    assert "another" not in served.worker.snapshot.queries
    assert counts[-1] == 3 * cut and len(served.exporter._most_dropped) == 2


def test_the_text_is_read_back_by_the_library(served):
    status, headers, body = served.get("/metrics")
    found = samples(body.decode())

    partition = (("partition", "0"), DAILY_COUNTS, ("topic", "transactions"))
    assert (status, headers["Content-Type"], b"app=" in body) == (200, TEXT, False)
    assert found["ledgerops_batches_total", (DAILY_COUNTS,)] == 1.0
    assert found["ledgerops_source_backlog_offsets", partition] == 50.0
    assert found["ledgerops_batch_duration_seconds_count", (DAILY_COUNTS,)] == 1.0
    for bound, count in (("+Inf", 1.0), ("0.5", 0.0)):
        assert found["ledgerops_batch_duration_seconds_bucket", (("le", bound), DAILY_COUNTS)] == count


def test_openmetrics_has_the_same_samples_and_the_batch_as_exemplar(serve):
    served = serve(start_worker=False, clock=lambda: T0 + 5)
    served.see()
    plain = {name for name, _ in samples(served.metrics())}
    _, headers, rich = served.get("/metrics", Accept=PROMETHEUS_3)

    assert headers["Content-Type"] == OPENMETRICS
    found = [sample for family in parse_openmetrics(rich.decode()) for sample in family.samples]
    assert plain <= {sample.name for sample in found}
    [exemplar] = [sample.exemplar for sample in found if sample.exemplar is not None]
    assert (exemplar.labels["batch_id"], exemplar.value) == ("7", 0.9)


@pytest.mark.parametrize(
    ("header", "kind"),
    [
        ("", TEXT),
        ("*/*", TEXT),
        ("text/html, */*;q=0.1", TEXT),
        (PROMETHEUS_3, OPENMETRICS),
        ("text/plain;q=0.9, application/openmetrics-text;version=1.0.0;q=0.5", TEXT),
        ("application/openmetrics-text;version=2.0.0", TEXT),
        ("application/openmetrics-text; q=nonsense", TEXT),
        ("application/openmetrics-text", OPENMETRICS),
    ],
)
def test_the_format_follows_the_weights_of_the_accept_header(header, kind):
    assert accepted(header) == kind


def test_hostile_names_do_not_break_the_text(serve):
    served = serve(start_worker=False)
    name = 'a"b\\c\nd{}é' + "x" * 500
    served.see(name=name)
    for accept, parse in (("", parse_text), (PROMETHEUS_3, parse_openmetrics)):
        found = samples(served.metrics(Accept=accept), parse)
        assert found["ledgerops_batches_total", (("query", clean_label(name)),)] == 1.0


def test_an_age_grows_while_nothing_happens_and_is_never_negative(serve):
    now = [T0]
    served = serve(start_worker=False, clock=lambda: now[0])
    served.see(eventTime={"watermark": "2027-01-15T07:59:50.000Z"})  # ten seconds before T0
    lags = []
    for now[0] in (T0, T0 + 100, T0 - 100):
        lags.append(samples(served.metrics())["ledgerops_watermark_lag_seconds", (DAILY_COUNTS,)])

    assert lags == [10.0, 110.0, 0.0]


def test_a_query_is_expected_though_it_ended_by_itself_or_never_ran(serve):
    served = serve(start_worker=False, expected_queries=("daily_counts", "absent"))
    served.see()
    served.queue.put("plan", json.dumps({"run_id": spark_json()["runId"], "trigger": "available_now"}), "daily_counts")
    served.see("terminated", exception=None)
    found = samples(served.metrics())

    for query in ("daily_counts", "absent"):
        assert found["ledgerops_query_expected", (("query", query),)] == 1.0
        assert found["ledgerops_query_active", (("query", query),)] == 0.0


def test_promtool_finds_nothing_to_say(serve):
    promtool = needed("promtool")
    served = serve(start_worker=False)
    served.see(eventTime={"watermark": "2027-01-15T07:59:50.000Z"})
    counts = dict.fromkeys(("cpu_seconds", "memory_bytes", "threads", "open_files", "processes"), 1)
    host = {"cpu_count": 2, "cpu_busy_ratio": 0.5, "memory_total_bytes": 8, "memory_available_bytes": 4}
    served.queue.put("host", json.dumps(host | {"processes": [{"role": "driver_python", **counts}]}))
    served.worker.turn()
    body = served.get("/metrics")[2]
    found = subprocess.run([promtool, "check", "metrics"], input=body, capture_output=True, timeout=30, check=False)

    assert (found.returncode, found.stdout, found.stderr) == (0, b"", b"")


@pytest.mark.parametrize(
    ("accepted", "packed"),
    [
        ("gzip;q=0", False), ("gzip; q=0.0, identity", False), ("gzip;q=0.5", True), ("br, GZIP;q=1", True),
        ("deflate", False), ("gzipped", False), ("x-gzip", True), ("gzip;q=x", False), ("", False),
    ],
)  # fmt: skip
def test_gzip_is_not_used_where_its_weight_is_zero(accepted, packed):
    assert takes_gzip(accepted) is packed


def test_requests_that_are_refused_are_counted_in_the_next_scrape(serve):
    served = serve()
    with socket.create_connection(("127.0.0.1", served.exporter.port), timeout=10) as client:
        client.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n")
        assert client.recv(1000).startswith(b"HTTP/1.1 400 ")
    assert served.exporter.answer(Request("http://[::1")).status == 400
    served.exporter._server.refused("address")
    assert 'ledgerops_http_requests_refused_total{reason="address"} 1.0' in served.metrics()


def test_the_recording_gives_what_is_younger_and_of_the_query(serve):
    now = [T0]
    served = serve(start_worker=False, clock=lambda: now[0])
    for name in "ab":
        served.see(name=name, runId=f"run-{name}")

    def names(path):
        status, headers, body = served.get(path)
        assert (status, headers["Content-Type"]) == (200, "application/x-ndjson")
        return [json.loads(line)["query"] for line in body.splitlines()]

    found = [names(f"/recording{query}") for query in ("", "?query=b", "?query=c")]
    assert found == [["a", "b"], ["b"], []]
    now[0] = time.time() + 3600
    assert [names(f"/recording?since={since}") for since in (60, 7200)] == [[], ["a", "b"]]
    assert [served.get(f"/recording?since={odd}")[0] for odd in ("x", "nan", "inf", "1e400")] == [400] * 4


def test_the_plan_is_told_though_it_has_left_the_memory_and_is_older_than_what_is_asked_for(serve, monkeypatch):
    monkeypatch.setattr("ledgerops.agent.worker.RING_BYTES", 8000)
    served = serve(start_worker=False)
    run_id, name = spark_json()["runId"], spark_json()["name"]
    served.queue.put(
        "plan", json.dumps({"run_id": run_id, "trigger": "processing_time", "trigger_interval": 2.0}), name
    )
    for number in range(20):
        served.see(batchId=number)

    for path in ("/recording", f"/recording?query={name}", "/recording?since=3600"):
        lines = [json.loads(line) for line in served.get(path)[2].splitlines()]
        assert [each["kind"] for each in lines[:2]] == ["plan", "progress"], path
        assert (lines[0]["query"], lines[0]["at"]) == (name, lines[1]["at"])
    assert served.get("/recording?since=-3600")[2] == b""


def test_the_diagnosis_is_the_document_of_all_queries_or_of_one(served):
    found = served.document("/diagnosis?query=daily_counts")
    assert (found["version"], found["source"], "app" in found) == (1, served.exporter.url, False)
    assert [query["query"] for query in found["queries"]] == ["daily_counts"]
    assert served.document("/diagnosis")["queries"] == found["queries"]
    assert [query["query"] for query in served.document("/status")["queries"]] == ["daily_counts"]


NO_QUERY = """{"error":"no query 'nope'; the queries are daily_counts"}\\n"""


@pytest.mark.parametrize(
    ("path", "status", "kind", "body"),
    [
        ("/", 200, "text/html; charset=utf-8", ".*<html.*"),
        ("/diagnosis?query=nope", 404, "application/json", NO_QUERY),
        ("/favicon.ico", 404, "application/json", ".*\n"),
        ("/metrics/", 404, "application/json", ".*\n"),
        ("/../etc/passwd", 404, "application/json", ".*\n"),
    ],
)
def test_a_page_is_served_or_refused_in_one_line(served, path, status, kind, body):
    code, headers, text = served.get(path)
    assert (code, headers["Content-Type"]) == (status, kind)
    assert re.fullmatch(body, text.decode(), re.DOTALL if status == 200 else 0)


def test_a_worker_is_healthy_until_it_has_ended(serve):
    served = serve()
    assert served.get("/healthz")[::2] == (200, b"ok\n")
    served.worker.stop()
    assert served.get("/healthz")[::2] == (503, b"the worker has ended\n")


def test_a_stuck_worker_is_not_healthy(serve, monkeypatch):
    served, stuck = serve(), threading.Event()

    def turn(timeout):
        stuck.set()
        time.sleep(0.05)

    monkeypatch.setattr(served.worker, "turn", turn)
    assert stuck.wait(60)  # the turn before it is over, and notes its time no more
    served.worker.last_turn -= 100
    assert served.get("/healthz")[0] == 503


def test_a_scrape_is_repeated_for_a_second_while_there_is_no_news(serve):
    now = [T0]
    served = serve(start_worker=False, clock=lambda: now[0])
    served.see()
    first = served.get("/metrics")[2]
    served.stats.error("rest")
    bodies = []
    for now[0] in (T0 + 0.9, T0 + 1.1, T0 - 1.0):
        bodies.append(served.get("/metrics")[2])
    served.see(batchId=8)

    assert [body == first for body in (*bodies, served.get("/metrics")[2])] == [True, False, False, False]


PROMETHEUS = {"X-Prometheus-Scrape-Timeout-Seconds": "5"}


def scraped(served, *seconds, **headers):
    """Scrapes after each pause, in a thread that is returned."""

    def scrape():
        for pause in seconds:
            time.sleep(pause)
            served.get("/metrics", **headers)

    thread = threading.Thread(target=scrape)
    thread.start()
    return thread


@cases(
    "before",
    ("the first scrape", (0.0,)),
    ("the second one", (0.0, 0.5)),
    ("on a busy machine", (0.0, 0.1, 0.7)),
)
def test_a_driver_that_ends_is_scraped_once_more_by_prometheus(serve, before):
    served = serve()
    scraped(served, *before, **PROMETHEUS).join()
    began = time.monotonic()
    last = scraped(served, 0.5, **PROMETHEUS)
    served.exporter.await_scrapes()
    [asked] = served.exporter._scrapes.values()
    last.join()

    assert asked[-1] > began, "it came back after the scrape that it waited for"


def test_a_driver_that_ends_waits_for_the_end_of_the_answer(serve, monkeypatch):
    served, read = serve(), []
    monkeypatch.setattr(served.exporter._server, "_packed", lambda answer: time.sleep(0.5) or answer)

    def scrape():
        time.sleep(0.1)
        read.append(served.get("/metrics", **PROMETHEUS, **{"Accept-Encoding": "gzip"})[0])

    scraped(served, 0.0, **PROMETHEUS).join()
    thread = threading.Thread(target=scrape)
    thread.start()
    served.exporter.await_scrapes()
    thread.join(0.3)
    assert read == [200]


def waited(served):
    """The seconds for which a driver that ends is held up."""
    began = time.monotonic()
    served.exporter.await_scrapes()
    return time.monotonic() - began


def test_a_person_who_reads_the_metrics_beside_prometheus_hides_it_not(serve):
    served = serve()
    scraped(served, 0.0, **PROMETHEUS).join()
    scraped(served, 0.0, 0.1).join()
    last = scraped(served, 0.3, **PROMETHEUS)
    seconds = waited(served)
    last.join()
    assert seconds > 0.2


def test_a_scraper_that_is_forgotten_for_others_meanwhile_is_no_longer_waited_for(serve, monkeypatch):
    served = serve()
    scraped(served, 0.0, **PROMETHEUS).join()
    monkeypatch.setattr("ledgerops.agent.exporter.MAX_SCRAPERS", 1)
    other = threading.Timer(0.2, served.exporter._note_scrape, ["another"])
    other.start()
    seconds = waited(served)
    other.join()
    assert seconds < LAST_SCRAPE_SECONDS


@cases(
    "pauses, headers, longest",
    ("never scraped", (), {}, 0.1),
    ("read by a person", (0.0, 0.1), {}, 0.1),
    ("a Prometheus that is gone", (0.0, 0.1, 0.1), PROMETHEUS, 4.0),
)
def test_a_driver_that_ends_waits_for_nobody_else_and_not_long_for_who_is_gone(serve, pauses, headers, longest):
    served = serve()
    scraped(served, *pauses, **headers).join()
    assert waited(served) < longest


def test_a_page_that_fails_is_a_500_and_counted(served, monkeypatch, caplog):
    monkeypatch.setattr(exporter_module, "status_document", lambda registry, now: 1 / 0)
    status, _, body = served.get("/status")
    assert (status, json.loads(body)) == (500, {"error": "this page failed; see the driver's log"})
    assert served.stats.collector_errors["exporter"] == 1


def test_a_taken_port_is_an_os_error(serve):
    served = serve()
    with pytest.raises(OSError, match="in use"):
        Exporter(Config(port=served.exporter.port), served.worker, served.stats)


def test_a_storm_of_scrapes_does_not_hold_the_worker_up(serve):
    served = serve()
    for name in range(20):
        served.queue.put("progress", json.dumps(spark_json(name=f"query{name}", runId=f"run-{name}")))
    with ThreadPoolExecutor(50) as pool:
        scrapes = [pool.submit(served.get, "/metrics") for _ in range(200)]
        for number in range(500):
            served.queue.put("progress", json.dumps(spark_json(batchId=number)))
        answers = []
        for scrape in scrapes:
            try:
                answers.append(scrape.result()[0])
            except (http.client.HTTPException, OSError):
                answers.append(None)  # turned away before it had sent its request
    served.worker.stop(timeout=60)

    assert set(answers) <= {200, 503, None} and 200 in answers
    assert served.stats.dropped == 0
    total = served.worker.snapshot.exported["daily_counts"].families["ledgerops_batches_total"].series
    assert total == (((), 493.0),) or total == (((), 500.0),)


@pytest.fixture
def secret(tmp_path):
    """The path of a file with a password."""
    (tmp_path / "secret").write_text("abc\n")
    return str(tmp_path / "secret")


def test_our_own_commands_give_the_secret_that_the_settings_name(serve, secret):
    served = serve(basic_auth_user="me", basic_auth_password_file=secret, bearer_token_file=secret, start_worker=False)
    address = f"http://127.0.0.1:{served.exporter.port}/recording"
    basic = {"LEDGEROPS_BASIC_AUTH_USER": "me", "LEDGEROPS_BASIC_AUTH_PASSWORD_FILE": secret}

    assert ask(address, environ={"LEDGEROPS_BEARER_TOKEN_FILE": secret})[0] is not None
    assert ask(address, environ=basic)[0] is not None
    with pytest.raises(UserError, match="requires credentials; set LEDGEROPS_BEARER_TOKEN_FILE, or"):
        ask(address, environ={})
    with pytest.raises(UserError, match="cannot read nowhere: no such file or directory"):
        ask(address, environ={"LEDGEROPS_BEARER_TOKEN_FILE": "nowhere"})


@pytest.mark.parametrize("command", [["status", "--once"], ["diagnose"]], ids=["status", "diagnose"])
def test_commands_take_address_and_credentials_from_the_settings_file(
    serve, secret, tmp_path, refusal, capsys, command
):
    served = serve(bearer_token_file=secret, start_worker=False)
    served.see()
    settings = tmp_path / "ledgerops.toml"
    settings.write_text(f'port = {served.exporter.port}\nbearer_token_file = "{secret}"\n')
    assert main(command) != 2
    capsys.readouterr()
    settings.write_text(f"port = {served.exporter.port}\n")
    assert "requires credentials" in refusal(*command)


def test_where_client_certificates_are_asked_for_only_those_of_the_authority_are_let_in(
    serve, ca, tmp_path, monkeypatch
):
    (tmp_path / "elsewhere").mkdir()
    server, client = certificate_of(ca, "server"), certificate_of(ca, "client")
    foreign = certificate_of(authority(tmp_path / "elsewhere"), "client")
    served = serve(tls_certificate=server.certificate, tls_key=server.key, tls_client_ca=ca.certificate)
    monkeypatch.setenv("SSL_CERT_FILE", ca.certificate)

    def health(environ):
        return ask(f"{served.exporter.url}/healthz", environ=environ)[0]

    def shown(pair):
        return {"LEDGEROPS_CLIENT_CERTIFICATE": pair.certificate, "LEDGEROPS_CLIENT_KEY": pair.key}

    assert health(shown(client)) == b"ok\n"
    for stranger in ({}, shown(foreign)):
        with pytest.raises(OSError):
            health(stranger)


def test_every_series_has_the_application_as_a_label(serve):
    served = serve(start_worker=False, app="billing", expected_queries=("never_ran",))
    served.see()
    text = served.metrics()

    found = samples(text)
    assert "ledgerops_batches_total" in {name for name, _ in found}
    assert [name for name, labels in found if ("app", "billing") not in labels] == []
    assert 'ledgerops_query_active{query="never_ran",app="billing"} 0.0' in text
    assert served.document("/diagnosis")["app"] == "billing"


def test_the_answer_of_an_empty_worker_is_well_formed():
    for kind, parse in ((TEXT, parse_text), (OPENMETRICS, parse_openmetrics)):
        worker = Worker(EventQueue(SelfStats()), QueryRegistry(Diagnoser), SelfStats())
        text = render(published(worker.snapshot, SelfStats()), T0, kind)
        assert "ledgerops_build_info" in {name for name, _ in samples(text.decode(), parse)}


def test_a_recording_says_what_its_exporter_mutes_and_its_freshness_objective(serve):
    mute = ("slow-sink:täglich, neu", "late-data")
    served = serve(start_worker=False, mute=mute, freshness_objective_seconds=7.5)
    found = open_source(f"{served.exporter.url}/recording")
    assert served.get("/recording")[1][MUTE_HEADER] == "slow-sink%3At%C3%A4glich%2C%20neu,late-data"
    assert (found.mute, found.freshness) == (mute, 7.5)
    assert MUTE_HEADER not in serve(start_worker=False).get("/recording")[1]
