from collections.abc import Callable
from dataclasses import replace

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


def every(gap: float, length: float = 2.0) -> Flows:
    return lambda at: at % gap < length


def run(seconds: float, step: float = 2.0, query: str = "debit_credit_pairs", **topics: Flows) -> History:
    """A query that reads topics, of which each grows by 10 in every batch at which it flows."""
    past, heads = History(query), dict.fromkeys(topics, 0)
    past.start(T0, "id-1", "run-1")
    for number in range(int(seconds / step)):
        read = []
        for topic, flows in topics.items():
            begin, partition = heads[topic], (topic, "0")
            heads[topic] += 10 if flows(number * step) else 0
            read.append(source(heads[topic] - begin, {partition: begin}, {partition: heads[topic]}, name=topic))
        rows = sum(each.rows for each in read)
        past.add(batch(number, started=T0 + number * step, query=query, sources=tuple(read), rows=rows))
    return past


def view(past: History, *others: History) -> QueryView:
    return QueryView(past, past.last_progress or T0, others=others)


def test_an_input_that_stops_while_the_other_goes_on_is_found():
    [finding] = RULE.check(view(run(400, debits=ever, credits=until(300))))

    assert finding.summary == (
        "no row has arrived in credits for 98 s; its longest pause was 2.0 s, and debits still receives rows"
    )
    assert (finding.component.name, finding.began) == ("credits", T0 + 300)


@cases("seconds, pause", ("the first", 900, "2.0 s"), ("the next one, too long", 6100, "16 min 40 s"))
def test_a_night_like_the_one_before_is_no_news(seconds, pause):
    def by_day(at: float) -> bool:
        return not 500 <= at < 1500 and at <= 3000

    [finding] = RULE.check(view(run(seconds, debits=ever, credits=by_day)))
    assert f"its longest pause was {pause}" in finding.summary
    assert list(RULE.check(view(run(4200, debits=ever, credits=by_day)))) == []


def test_a_night_in_which_the_query_was_idle_is_remembered_too():
    silent = run(600, transactions=ever)
    silent.idle(T0 + 700)
    silent.idle(T0 + 1600)
    for number in range(800, 1000):  # the next day
        begin, end = ({("transactions", "0"): at * 10} for at in (number - 500, number - 499))
        silent.add(batch(number, started=T0 + number * 2, sources=(source(10, begin, end, name="transactions"),)))
    silent.idle(T0 + 2900)

    assert list(RULE.check(QueryView(silent, T0 + 2901, others=[run(2900, query="other", accounts=ever)]))) == []


@cases(
    "other, idle, found",
    ("of another topic", run(400, query="other", accounts=ever), True, ["input-stopped"]),
    ("of the same topic", run(400, query="other", transactions=ever), True, []),
    ("the query is stuck, and does not know its inputs", run(400, query="other", accounts=ever), False, []),
)
def test_an_idle_query_is_told_when_the_inputs_of_others_go_on(other, idle, found):
    silent = run(300, transactions=ever)
    if idle:
        silent.idle(T0 + 400)
    verdict = Diagnoser((RULE,))(QueryView(silent, T0 + 401, others=[other]))

    assert [root.rule for root in verdict.root_causes] == found


@cases(
    "past",
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
    ("rows come again", run(410, debits=ever, credits=lambda at: at <= 300 or at >= 400)),
)
def test_others_are_not(past):
    assert list(RULE.check(view(past))) == []


def idle(past: History, at: float) -> QueryView:
    past.idle(T0 + at)
    return QueryView(past, T0 + at)


def folder(rows_until, seconds=120.0, first=0.5, every=2.0):
    """A query that reads a folder of files, which reports no heads; it looks every 2 s and then finds nothing. Its
    first batch may take longer."""
    past = History("card_payments")
    past.start(T0, "id-1", "run-1")
    for number in range(int(rows_until / every)):
        of = {"description": "FileStreamSource[file:/data/orders/2026]", "kind": "files"}
        files = replace(source(10, {}, {}, name="FileStreamSource"), **of)
        at, took = (T0 + every * number, 0.5) if number else (T0 + 0.5 - first, first)
        past.add(batch(number, started=at, duration=took, query="card_payments", sources=(files,), rows=10))
    past.idle(T0 + rows_until)
    return idle(past, seconds)


IN_TOPIC = "no row has arrived in transactions for 10 min 2 s; its longest pause was 2.0 s"
IN_FOLDER = "no row has arrived in FileStreamSource (2026) for 72 s; its longest pause was 1.5 s"


@cases(
    "seen, said, step",
    ("a topic", idle(run(300, transactions=ever), 900), IN_TOPIC, "check the producer of transactions"),
    ("a folder", folder(50), IN_FOLDER, "see whether the folder of FileStreamSource (2026) still exists"),
    ("a folder, whose long first batch is no pause", folder(50, first=9.0), IN_FOLDER, "see whether the folder of "),
)
def test_a_steady_input_that_stops_is_worth_knowing_without_others_that_flow(seen, said, step):
    [finding] = RULE.check(seen)
    assert (finding.summary, finding.at_most) == (said, "info")
    assert finding.remedies[0].action.startswith(step)


@cases(
    "seen",
    ("a dozen times", idle(run(300, transactions=every(20.0)), 1800)),
    ("often, with pauses of many seconds", idle(run(900, transactions=every(20.0)), 1800)),
    ("one load of some seconds", idle(run(25, step=1.0, transactions=ever), 1800)),
    ("a folder that gets files now and then", folder(400, seconds=700, every=10.0)),
    ("a folder that has been read to its end in a few batches", folder(20)),
)
def test_an_irregular_input_is_left_alone_without_others_that_flow(seen):
    assert list(RULE.check(seen)) == []
