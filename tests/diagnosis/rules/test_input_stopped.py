from collections.abc import Callable

from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.diagnosis.rules.input_stopped import RULE
from ledgerops.model.history import History
from ledgerops.signals.query_view import QueryView
from tests.build import T0, batch, source
from tests.tables import cases

Flows = Callable[[float], bool]


def until(stop: float) -> Flows:
    return lambda at: at <= stop


def ever(at: float) -> bool:
    return True


def run(seconds: float, step: float = 2.0, query: str = "debit_credit_pairs", **topics: Flows) -> History:
    """A query that reads topics, of which each grows by 10 in every batch at which it flows."""
    past, heads = History(query), dict.fromkeys(topics, 0)
    past.start(T0, "id-1", "run-1")
    for number in range(int(seconds / step)):
        at = number * step
        read = []
        for topic, flows in topics.items():
            begin = heads[topic]
            heads[topic] += 10 if flows(at) else 0
            partition = (topic, "0")
            read.append(source(heads[topic] - begin, {partition: begin}, {partition: heads[topic]}, name=topic))
        rows = sum(each.rows for each in read)
        past.add(batch(number, started=T0 + at, query=query, sources=tuple(read), rows=rows))
    return past


def view(past: History, *others: History) -> QueryView:
    return QueryView(past, past.last_progress or T0, others=others)


def test_an_input_that_stops_while_the_other_goes_on_is_found():
    [finding] = RULE.check(view(run(400, debits=ever, credits=until(300))))

    assert (
        finding.summary
        == "no row has arrived in credits for 98 s; its longest pause was 2.0 s, and debits still receives rows"
    )
    assert (finding.component.name, finding.began) == ("credits", T0 + 300)


def test_a_night_like_the_one_before_is_no_news():
    def by_day(at: float) -> bool:
        return not 500 <= at < 1500 and at <= 3000

    first_night = run(900, debits=ever, credits=by_day)
    assert [each.component.name for each in RULE.check(view(first_night))] == ["credits"]

    assert list(RULE.check(view(run(4200, debits=ever, credits=by_day)))) == []
    [finding] = RULE.check(view(run(6100, debits=ever, credits=by_day)))
    assert "its longest pause was 16 min 40 s" in finding.summary


def test_an_idle_query_is_told_when_the_inputs_of_others_go_on():
    silent, busy = run(300, transactions=ever), run(400, query="other", accounts=ever)
    silent.idle(T0 + 400)
    verdict = Diagnoser()(QueryView(silent, T0 + 401, others=[busy]))

    assert (verdict.status, [root.rule for root in verdict.root_causes]) == ("idle", ["input-stopped"])


def test_it_clears_when_rows_come_again():
    again = run(410, debits=ever, credits=lambda at: at <= 300 or at >= 400)
    assert list(RULE.check(view(again))) == []


def every(gap: float, length: float = 2.0) -> Flows:
    return lambda at: at % gap < length


@cases(
    "past",
    ("both flow", run(400, debits=ever, credits=ever)),
    ("both stop: night, or an idle system", run(400, debits=until(300), credits=until(300))),
    ("silent for less than a minute", run(350, debits=ever, credits=until(300))),
    ("reference data that were loaded at the start", run(600, debits=ever, credits=until(30))),
    ("many small loads at the start", run(600, step=1.0, debits=ever, credits=until(30))),
    ("came a dozen times", run(600, debits=ever, credits=lambda at: at <= 240 and at % 20 == 0)),
    ("never flowed", run(600, debits=ever, credits=lambda at: at == 0)),
    ("an irregular input in its pause", run(900, debits=ever, credits=every(240.0))),
    ("a pause as before", run(590, debits=ever, credits=lambda at: at < 200 or 320 < at < 420)),
    ("long triggers, few looks", run(3000, step=60.0, debits=ever, credits=until(2400))),
    ("no batch yet", run(0, debits=ever)),
)
def test_others_are_not(past):
    assert list(RULE.check(view(past))) == []


def test_a_steady_input_that_stops_is_worth_knowing_without_others_that_flow():
    silent = run(300, transactions=ever)
    silent.idle(T0 + 900)
    [finding] = RULE.check(QueryView(silent, T0 + 900))

    assert (finding.summary, finding.at_most == "info") == (
        "no row has arrived in transactions for 10 min 2 s; its longest pause was 2.0 s",
        True,
    )


@cases(
    "past",
    ("a dozen times", run(300, transactions=every(20.0))),
    ("often, with pauses of many seconds", run(900, transactions=every(20.0))),
    ("one load of some seconds", run(25, step=1.0, transactions=ever)),
)
def test_an_irregular_input_is_left_alone_without_others_that_flow(past):
    silent = past
    silent.idle(T0 + 1800)
    assert list(RULE.check(QueryView(silent, T0 + 1800))) == []


def test_a_query_that_is_stuck_does_not_know_its_inputs():
    stuck, busy = run(300, transactions=ever), run(400, query="other", accounts=ever)
    assert list(RULE.check(QueryView(stuck, T0 + 400, others=[busy]))) == []


def test_another_query_on_the_same_topic_is_no_other_input():
    ahead = run(300, transactions=ever)
    ahead.idle(T0 + 400)
    behind = run(400, query="other", transactions=ever)

    assert list(RULE.check(QueryView(ahead, T0 + 400, others=[behind]))) == []


def folder(rows_until, seconds=120.0, first=0.5, every=2.0):
    """A query that reads a folder of files, which reports no heads; it looks every 2 s and then finds nothing. Its
    first batch may take longer."""
    past = History("card_payments")
    past.start(T0, "id-1", "run-1")
    for number in range(int(rows_until / every)):
        files = source(10, {}, {}, name="FileStreamSource[file:/in]")
        at, took = (T0 + every * number, 0.5) if number else (T0 + 0.5 - first, first)
        past.add(batch(number, started=at, duration=took, query="card_payments", sources=(files,), rows=10))
    past.idle(T0 + rows_until)
    past.idle(T0 + seconds)
    return QueryView(past, T0 + seconds)


def test_a_folder_that_gets_no_more_files_is_worth_knowing():
    [finding] = RULE.check(folder(50))

    assert (finding.summary, finding.at_most == "info") == (
        "no row has arrived in FileStreamSource[file:/in] for 72 s; its longest pause was 1.5 s",
        True,
    )


def test_a_long_first_batch_is_no_pause_of_the_folder():
    [finding] = RULE.check(folder(50, first=9.0))
    assert finding.summary.endswith("its longest pause was 1.5 s")


def test_a_folder_that_gets_files_now_and_then_is_left_alone():
    assert list(RULE.check(folder(400, seconds=700, every=10.0))) == []


def test_a_folder_that_has_been_read_to_its_end_in_a_few_batches_is_not():
    assert list(RULE.check(folder(20))) == []
