from dataclasses import replace

from ledgerops.diagnosis.rules.late_data import RULE as LATE_DATA
from ledgerops.diagnosis.rules.watermark_stalled import RULE
from tests.diagnosis.conftest import START, told_by
from tests.diagnosis.rules.retelling import retold
from tests.tables import cases

DELAY = 10.0


def joined(
    history, silent=14, count=24, sparse=None, first_is_silent=False, names=None, rows=500, one=False, state=0, **case
):
    """Two inputs of a join. From batch `silent` on the accounts send none; `sparse` = only each so many batches."""
    view = history(
        seconds=[1.0] * (count - 6),
        operators=[{"name": "symmetricHashJoin", "rows": 100 + state * n} for n in range(count - 6)],
        plan={"watermarks": {"event_time": DELAY, "opened": DELAY}},
        **case,
    )
    newest = {"accounts": None, "transactions": None}

    def fields(n, batch):
        sends = n < silent and (sparse is None or n % sparse == 0)
        known = [at for at in newest.values() if at is not None]
        mark = min(known) - DELAY if len(known) == 2 else None
        newest["transactions"] = batch.started
        newest["accounts"] = batch.started if sends else newest["accounts"]
        [source] = batch.sources
        both = (replace(source, name="transactions", rows=rows), replace(source, name="accounts", rows=rows * sends))
        observed = {
            f"ledgerops_{name}": {"rows": rows, "event_time_max": at and f"2026-09-21 {_clock(at)}"}
            for name, at in newest.items()
            if names == "all" or (names and (name != "accounts" or sends))
        }
        return {
            "sources": (replace(source, rows=rows * (1 + sends)),) if one else both,
            "rows": rows * (1 + sends),
            "watermark": mark,
            "event_time_max": None if first_is_silent and not sends else newest["transactions"],
            "observed": observed,
        }

    return retold(view, fields)


def _clock(at):
    seconds = int(at) % 86400
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


SILENT = "the watermark has not advanced for 18 s while 4,500 rows arrived"
OBSERVED, NONE = f"{SILENT}: accounts, observed 20 s behind the other, stops it", "sent none, stops it"
NEVER = (
    "there has been no watermark for 46 s while 11,500 rows arrived: accounts, which sent none, keeps it from "
    "starting; state grew from 0 to 100 rows meanwhile"
)


@cases(
    "case, said",
    ("by its rows", {}, f"{SILENT}: accounts, which {NONE}"),
    (
        "while state grows",
        {"state": 50},
        f"{SILENT}: accounts, which {NONE}; state grew from 500 to 950 rows meanwhile",
    ),
    ("both inputs are observed in one source", {"names": "all", "one": True}, OBSERVED),
    ("only inputs that send are observed", {"names": "with rows", "one": True}, OBSERVED),
    ("a source that is observed, too", {"names": "all"}, f"{SILENT}: accounts (observed as accounts), which {NONE}"),
    ("it never sent a row", {"silent": 0}, NEVER),
)
def test_the_silent_input_of_a_join_is_found(history, case, said):
    [finding] = RULE.check(joined(history, **case))
    assert (finding.summary, finding.component.name) == (said, "accounts")
    assert ("(observed as accounts)" in finding.component.detail) is ("(observed as accounts)" in said)


def test_a_silent_folder_is_told_by_its_name(history):
    def of_folders(n, batch):
        names = ("FileStreamSource", "FileStreamSource-2")
        folders = ("/in/orders", "/in/payments/")
        told = [
            replace(each, name=name, kind="files", description=f"FileStreamSource[file:{folder}]")
            for each, name, folder in zip(batch.sources, names, folders, strict=True)
        ]
        return {"sources": tuple(told)}

    [finding] = RULE.check(retold(joined(history), of_folders))

    assert finding.summary == f"{SILENT}: FileStreamSource-2 (payments), which {NONE}"
    assert finding.component.name == "FileStreamSource-2"
    assert finding.remedies[0].action.startswith("find out why FileStreamSource-2 (payments) sends nothing new")


@cases(
    "case, name, value",
    ("the first watermark is that of it", {"first_is_silent": True}, "watermark_behind_rows_seconds", None),
    ("an input that never sent a row has no usual pause", {"silent": 0}, "watermark_usually_still_seconds", None),
    ("an input that never sent a row has no watermark", {"silent": 0}, "watermark_behind_rows_seconds", None),
    ("it seldom sends", {"sparse": 8, "silent": 33, "count": 56}, "watermark_usually_still_seconds", 16.0),
    ("within five batches", {"count": 20}, "watermark_still_seconds", 10.0),
    ("of a watermark that had moved twice", {"silent": 3, "count": 34}, "watermark_still_seconds", 60.0),
)
def test_it_is_found_with_the_numbers_that_are_known(history, case, name, value):
    [finding] = RULE.check(joined(history, **case))
    assert told_by(finding).get(name) == value


@cases(
    "case",
    ("both send", {"silent": 99}),
    ("silent for three batches", {"silent": 21}),
    ("silent for three batches of a long interval", {"silent": 21, "interval": 10.0}),
    ("silent for some seconds, in many short batches", {"interval": 0.5, "count": 21}),
    ("an input that seldom sends", {"sparse": 8, "silent": 99, "count": 31}),
    ("silent for not much longer than it often is", {"sparse": 8, "silent": 33, "count": 46}),
    ("nothing tells the inputs apart", {"one": True}),
    ("an input that has sent three times, every half minute", {"sparse": 14, "silent": 99, "count": 42}),
    ("a watermark that had moved twice, while results are young enough", {"silent": 3, "count": 33}),
    ("a branch, of a watermark that had moved twice", {"silent": 3, "count": 40, "one": True}),
    ("no rows at all", {"rows": 0}),
    ("no watermark, of a query that has only begun", {"silent": 0, "count": 8}),
    ("no watermark, while no input sends", {"silent": 0, "rows": 0}),
)
def test_others_are_not(history, case):
    assert list(RULE.check(joined(history, **case))) == []


def restarted(history, stood=0.0, **case):
    """The join, which began with the watermark of its checkpoint; in earlier runs it stood so many seconds."""
    view = joined(history, **{"silent": 0} | case)
    view = retold(view, lambda n, batch: {"watermark": view.history.batches[0].started - 600.0})
    view.history.watermark_stood = stood
    return view


def test_an_input_that_is_silent_from_the_restart_on_is_found(history):
    [finding] = RULE.check(restarted(history, count=40))
    assert finding.summary.startswith("the watermark has not advanced for 78 s while 19,500 rows arrived: accounts,")
    assert finding.at_most == "info", "it may be one that seldom sends"


@cases(
    "case, found",
    ("it usually sends every 40 s", {"stood": 40.0, "count": 40}, False),
    ("it usually sent sooner", {"stood": 38.0, "count": 40}, True),
    ("results are young enough", {"count": 30}, False),
)
def test_after_a_restart_it_counts_how_long_the_watermark_stood_in_earlier_runs(history, case, found):
    told = [finding.at_most for finding in RULE.check(restarted(history, **case))]
    assert told == ["critical"] * found


def test_a_branch_that_passes_nothing_on_is_found_when_it_lasts(history):
    [finding] = RULE.check(joined(history, one=True, count=40))
    name = "one input of the query"
    assert finding.component.name == name
    assert f"{name} (the watermarks are on event_time, opened), which passes on no newer rows" in finding.summary
    assert "compare the newest event time of each input" in finding.remedies[0].action


def test_rows_that_do_not_go_on_in_event_time_stall_nothing(history):
    view = joined(history)
    day = view.history.batches[13].started
    assert list(RULE.check(retold(view, lambda n, batch: {"event_time_max": day if n > 13 else batch.started}))) == []


def clocked(history, stands=20, count=40, when=None, rows=500, source=None, stray=0.0, null=False, dropped=0, **case):
    """One input whose newest event time is `when(instant)` of each batch, up to batch `stands`, then that of this one
    less up to `stray` seconds; `null`: then it is missing. `rows` may be a function of the batch's number."""
    view = history(
        seconds=[0.5] * (count - 6),
        operators={"rows": 20, "dropped_rows": dropped},
        plan={"watermarks": {"event_time": DELAY}},
        **case,
    )
    starts, tops = [batch.started for batch in view.history.batches], [None]

    def fields(n, batch):
        top, read = tops[-1], rows(n) if callable(rows) else rows
        newest = (when or float)(starts[min(n, stands)]) - (stray * (1 + n % 3) if n > stands else 0.0)
        newest = 0.0 if null and n > stands else newest
        tops.append(newest if read and (top is None or newest > top) else top)
        [only] = batch.sources
        return {
            "rows": read,
            "event_time_max": newest if read else None,
            "sources": (replace(only, name=source or only.name, rows=read),),
            "watermark": None if top is None or top - DELAY <= 0 else top - DELAY,
        }

    return retold(view, fields)


COMPARE = "compare the event time of new rows with the clock: check the producers' clock and the column"
STANDS = "the newest event time has not moved while 9,500 rows arrived in 38 s, so no window closes"


@cases(
    "stray, said, step",
    ("at one time", 0.0, "the clock or the column stands", COMPARE),
    ("beside older rows", 0.5, "only older rows arrive", "find the producer that sent the newest rows"),
)
def test_a_clock_that_stands_is_found(history, stray, said, step):
    [finding] = RULE.check(clocked(history, stray=stray))

    assert finding.summary == f"{STANDS}: {said}"
    assert (finding.component.name, finding.component.detail) == ("transactions", "event_time")
    assert finding.remedies[0].action.startswith(step)
    assert [*told_by(finding)] == [
        "event_time_still_seconds",
        "event_time_usually_still_seconds",
        "rows_read_meanwhile",
    ]


def test_where_the_older_rows_are_dropped_it_is_late_data_and_no_clock(history):
    view = clocked(history, stray=600.0, dropped=400)
    assert list(RULE.check(view)) == []
    assert {"rows-dropped", "freshness-breach"} <= set(LATE_DATA.explains) and list(LATE_DATA.check(view))


def minute(at):
    return at // 60 * 60.0


UNIT, ZERO = ({"when": when, "stands": 99, "count": 16} for when in (lambda at: at / 1e3, lambda at: 0.0))


@cases(
    "case",
    ("of a rate", {"source": "RateStreamV2"}),
    ("within half a minute", {"count": 36}),
    ("in local time that is read as UTC", {"when": lambda at: at + 7200.0}),
    ("in a replay at the pace of the clock", {"when": lambda at: at - 86_400.0}),
    ("after a backlog of old rows", {"when": lambda at: START + 60 - (START + 60 - at) * 9}),
    ("with rows in every other batch", {"rows": lambda n: 500 * (n % 2 or n == 39)}),
    ("in whole minutes", {"when": minute, "stands": 110, "count": 180}),
    ("beside older rows in open windows, of which some are dropped", {"stray": 1.0, "dropped": 20}),
    ("for longer than batches are remembered", {"count": 300}),
)
def test_it_is_found_of_any_source(history, case):
    assert len(list(RULE.check(clocked(history, **case)))) == 1


@cases(
    "case",
    ("a replay of a file of one time", {"stands": 0}),
    ("a time that moved twice only", {"stands": 2}),
    ("for less than half a minute", {"count": 30}),
    ("slow event time", {"stands": 99, "when": lambda at: START + (at - START) / 50}),
    ("a clock that moves", {"stands": 99}),
    ("a replay that stays at one time", {"when": lambda at: START - 1e7 + (at - START) * 900}),
    ("whole minutes, for not much longer than one", {"when": minute, "stands": 110, "count": 135}),
    ("whole hours", {"when": lambda at: at // 3600 * 3600.0, "stands": 99}),
    ("an idle input, with batches that only clean up", {"rows": lambda n: 500 * (n <= 20)}),
    ("an idle query", {"idle": True}),
    ("milliseconds read as seconds, which stop no window", {"when": lambda at: at * 1e3, "stands": 99}),
    ("one batch after a pause", {"rows": lambda n: 500 * (n <= 20 or n == 39)}),
)
def test_other_clocks_do_not_stand(history, case):
    assert list(RULE.check(clocked(history, **case))) == []


@cases(
    "case, said, rows, still",
    ("seconds as milliseconds", UNIT, "1970-01-21: seconds read as milliseconds?", "7,500 rows arrived in 30 s", 30.0),
    ("missing in all rows", ZERO, "1970-01-01: a missing time read as 0?", "7,500 rows arrived in 30 s", 30.0),
    ("from now on", {"null": True}, "1970-01-01: a missing time read as 0?", "9,500 rows arrived in 38 s", 38.0),
)
def test_what_is_no_time_is_named(history, case, said, rows, still):
    [finding] = RULE.check(clocked(history, **case))
    assert finding.summary == f"the newest event time is {said} No window closes, while {rows}"
    assert told_by(finding)["event_time_still_seconds"] == still


def test_rows_that_move_behind_one_that_is_ahead_do_not_stand(history):
    view = clocked(history, stands=99)
    top = view.history.batches[20].started + 200

    def fields(n, batch):
        ahead = {"event_time_max": top} if n == 20 else {}
        return ahead | {"watermark": top - DELAY if n > 20 else batch.watermark, "event_time_avg": batch.started - 1}

    assert list(RULE.check(retold(view, fields))) == []
