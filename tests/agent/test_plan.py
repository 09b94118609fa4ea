import pytest

from ledgerops.agent.plan import PlanReader
from ledgerops.agent.plan_text import (
    longest_window,
    output_mode,
    parse_keys,
    parse_sink,
    parse_trigger,
    parse_watermarks,
    read_physical,
    rows_made,
    without_event_time,
    without_timeout,
)
from ledgerops.agent.queue import EventQueue
from ledgerops.metrics.self_watch import SelfStats
from tests.agent.fakes import FakeSession, queue, roster_of, run_of, taken
from tests.tables import cases

LOGICAL_4_2 = """WriteToMicroBatchDataSource noop-table
+- ~Aggregate [window#7-T10000ms], [window#7-T10000ms, count(1) AS n#3L]
   +- ~EventTimeWatermark a0289ebc-3abe-45d5-a6e6-8b399ad21374, timestamp#0: timestamp, 10 seconds
"""
LOGICAL_3_5 = (
    "+- EventTimeWatermark event_time#12: timestamp, 1 hours 30 minutes\n+- EventTimeWatermark at#3, 5 seconds"
)
PHYSICAL = """WriteToDataSourceV2
+- *(5) HashAggregate(keys=[window#7-T10ms, _groupingexpression#25L], functions=[count(1)], output=[window#7-T10ms, customer_id#2L, n#3L])
   +- StateStoreSave [window#7-T10ms, _groupingexpression#25L], state info [ ], Update, 2
      +- Exchange hashpartitioning(window#7-T10ms, _groupingexpression#25L, 2), REQUIRED_BY_STATEFUL_OPERATOR
         +- *(2) HashAggregate(keys=[window#7-T10ms, _groupingexpression#25L], functions=[partial_count(1)], output=[window#7-T10ms, _groupingexpression#25L, count#13L])
"""  # noqa: E501
SHUFFLE = "Exchange hashpartitioning("


@pytest.mark.parametrize(
    ("text", "trigger"),
    [
        ("ProcessingTimeTrigger(2000)", ("processing_time", 2.0)),
        ("ProcessingTimeTrigger(0)", ("processing_time", 0.0)),
        ("AvailableNowTrigger", ("available_now", None)),
        ("OneTimeTrigger", ("once", None)),
        ("ContinuousTrigger(1000)", ("continuous", 1.0)),
        ("RealTimeTrigger(5000)", ("real_time", 5.0)),
        ("SomethingNew(abc)", (None, None)),
    ],
)
def test_a_trigger_is_its_kind_and_interval(text, trigger):
    assert parse_trigger(text) == trigger


@cases(
    "plan, watermarks",
    ("Spark 4.2, with the node's id", LOGICAL_4_2, {"timestamp": 10.0}),
    ("Spark 3.5, several units, several nodes", LOGICAL_3_5, {"event_time": 5400.0, "at": 5.0}),
    (
        "two inputs that call it alike, and one of them twice",
        "EventTimeWatermark at#1: timestamp, 10 minutes\n"
        "EventTimeWatermark at#9: timestamp, 1 hours\n"
        "EventTimeWatermark at#1: timestamp, 5 minutes",
        {"at": 600.0, "at (2)": 3600.0},
    ),
    ("below a second", "EventTimeWatermark x#1: timestamp, 500 milliseconds", {"x": 0.5}),
    ("none", "Aggregate [a]", {}),
)
def test_watermarks_are_columns_with_seconds(plan, watermarks):
    assert parse_watermarks(plan) == watermarks


@cases(
    "plan, keys",
    ("an expression has the name that the query gives it", PHYSICAL, ("window", "customer_id")),
    ("a column", SHUFFLE + "customer_id#12, 200), X", ("customer_id",)),
    ("the widest first", SHUFFLE + "a#1, 2)\n" + SHUFFLE + "b#2, a#1, 16)", ("b", "a")),
    ("functions", SHUFFLE + "coalesce(a#1, b#2L), c#3.d, 4), X", ("coalesce(a, b)", "c.d")),
    ("none", "Exchange SinglePartition", ()),
    ("cut off", SHUFFLE, ()),
)
def test_keys_are_the_columns_of_the_shuffles(plan, keys):
    assert parse_keys(plan) == keys


@pytest.mark.parametrize(
    ("text", "sink"),
    [
        ("NoopTable", "NoopTable"),
        ("org.apache.spark.sql.execution.datasources.noop.NoopTable$@75b2b9d8", "NoopTable"),
        ("ForeachBatchSink", "ForeachBatchSink"),
        ("FileSink[file:/tmp/a.b/C]", "FileSink[file:/tmp/a.b/C]"),
    ],
)
def test_a_sink_has_neither_package_nor_hash(text, sink):
    assert parse_sink(text) == sink


@pytest.fixture
def session():
    made = FakeSession()
    made.spark = None
    return made


def test_what_cannot_be_read_stays_unknown_and_nothing_raises(session):
    box = queue()
    PlanReader(box, roster_of(run_of(session, last_batch=None, plan=None))).collect()
    [(kind, data)] = taken(box)
    assert (kind, data["run_id"], data["trigger"], data["keys"]) == ("plan", "run-1", None, [])


def test_a_query_that_has_just_ended_hides_no_other_ones_plan(session):
    session.classic = True
    box, ended, execution = queue(), Execution(), Execution()
    del ended._jsq
    execution.runId = "run-2"
    runs = [run_of(session, handle.runId, plan=None, handle=handle) for handle in (ended, execution)]
    PlanReader(box, roster_of(*runs)).collect()
    assert [data["sink"] for _, data in taken(box)] == [None, "ForeachBatchSink"]


def test_a_plan_that_finds_the_queue_full_is_told_later(session):
    box = EventQueue(SelfStats(), size=1)
    box.put("idle", "{}")
    reader = PlanReader(box, roster_of(run_of(session, plan=None)))
    reader.collect()
    assert [kind for kind, _ in taken(box)] == ["idle"]
    reader.collect()
    reader.collect()
    assert [kind for kind, _ in taken(box)] == ["plan"]


def test_a_plan_is_read_again_after_the_first_batch_and_then_no_more(session):
    box, run = queue(), run_of(session, last_batch=None, plan=None)
    reader = PlanReader(box, roster_of(run))
    counts = []
    for run.last_batch in (None, None, 0, 1, 2):
        reader.collect()
        counts.append(len(taken(box)))
    assert counts == [1, 0, 1, 0, 0]


class Told(str):
    """An object of Spark's with this text."""

    def toString(self):
        return self

    def getClass(self):
        return self

    def getName(self):
        return self


class Execution:
    """A query's execution without a batch; `asked` are the names of its methods that were called."""

    def __init__(self):
        self.asked = []
        self._jsq, self.runId = self, "run-1"

    def trigger(self):
        self.asked.append("trigger")
        return Told("ProcessingTimeTrigger(2000)")

    def sink(self):
        self.asked.append("sink")
        return Told("ForeachBatchSink")

    def lastExecution(self):
        self.asked.append("lastExecution")


def test_what_batches_do_not_change_is_read_once(session):
    session.classic = True
    execution, box = Execution(), queue()
    run = run_of(session, last_batch=None, plan=None, handle=execution)
    reader = PlanReader(box, roster_of(run))
    reader.collect()
    assert execution.asked == ["trigger", "sink", "lastExecution"]
    execution.asked.clear()
    run.last_batch = 0
    reader.collect()
    assert execution.asked == ["lastExecution"]
    plans = [data for _, data in taken(box)]
    assert plans[0] == plans[1] and (plans[1]["trigger_interval"], plans[1]["sink"]) == (2.0, "ForeachBatchSink")


INFO = "state info [ checkpoint = file:/x/state, opId = 0 ] stateStoreCkptIds = None"
SAVE = "+- StateStoreSave [{}], " + INFO + ", Append, 0, 0, 2\n"
DEDUPE = "+- StreamingDeduplicate [{}], " + INFO + ", 0, 0\n"
JOIN = "+- StreamingSymmetricHashJoin [o#3L], [p#7L], Inner, condition = [ leftOnly = null, both = null ], "
JOIN += INFO + ", 0, 0, state cleanup [ {} ], 2, Append\n"


SESSIONS = SAVE.replace("StateStoreSave", "SessionWindowStateStoreSave")
WITHIN = DEDUPE.replace("Deduplicate", "DeduplicateWithinWatermark")
WINDOW = "window#27-T10000ms"
LEFT, RIGHT = "left value predicate: (a#1-T10ms <= -4)", "right value predicate: (b#2-T10ms <= -1)"


@cases(
    "plan, names",
    ("a group by an id", SAVE.format("session_id#4"), ("stateStoreSave",)),
    ("a group by a window", SAVE.format(f"{WINDOW}, country#21L"), ()),
    ("a group by the event time, without a delay", SAVE.format("at#9-T0ms"), ()),
    ("one of two groups", SAVE.format("day#3-T86400ms") + SAVE.format("id#4"), ()),
    ("keys that are not all shown", SAVE.format("a#1, ... 26 more fields"), ()),
    ("a key with brackets", SAVE.format(f"arr[0]#12, {WINDOW}"), ()),
    ("one group for all rows", SAVE.format(""), ()),
    ("by an id, before windows", SAVE.format(WINDOW) + DEDUPE.format("window_id#28"), ("dedupe",)),
    ("duplicates by id and event time", DEDUPE.format("id#20, at#22-T10000ms"), ()),
    ("duplicates within the watermark", WITHIN.format("id#20"), ()),
    ("sessions", SESSIONS.format("gateway#3L"), ()),
    ("a join on ids", JOIN.format("left = null, right = null"), ("symmetricHashJoin",)),
    ("a join that bounds one side", JOIN.format(f"left = null, {RIGHT}"), ("symmetricHashJoin",)),
    ("a join that bounds both", JOIN.format(f"{LEFT}, {RIGHT}"), ()),
)
def test_state_that_no_watermark_removes_is_told_by_the_marks_of_its_keys(plan, names):
    assert without_event_time(plan) == names
    assert read_physical(plan)["stateful"]


@cases(
    "plan, mode",
    ("a group", SAVE.format(WINDOW), "append"),
    ("another mode", SAVE.format("a#1").replace("Append", "Update"), "update"),
    ("sessions", SESSIONS.format("a#1"), "append"),
    ("an operator that has none", DEDUPE.format("id#20"), None),
)
def test_the_output_mode_is_told_by_what_saves_groups(plan, mode):
    assert output_mode(plan) == mode


IN_PANDAS = """WriteToDataSourceV2 MicroBatchWrite[epoch: 26, writer: NoopStreamingWrite]
+- !FlatMapGroupsInPandasWithState f(k#2L, at#0)#3, [k#2L], [k#4L], state info [ opId = 0 ], 2, Update, {}, 1795, 0, 0
   +- Sort [k#2L ASC NULLS FIRST], false, 0
"""
IN_SCALA = (
    "+- FlatMapGroupsWithState func, k#1, [k#1], state info [ ], class[n[0]: bigint], 2, Update, {}, 0, 0, false\n"
)


NONE, BY_CLOCK, BY_EVENT = "NoTimeout", "ProcessingTimeTimeout", "EventTimeTimeout"
OF_SCALA = ("flatMapGroupsWithState",)


@cases(
    "plan, names",
    ("Python without a timeout", IN_PANDAS.format(NONE), ("applyInPandasWithState",)),
    ("Scala without a timeout", IN_SCALA.format(NONE), OF_SCALA),
    ("a timeout by the clock", IN_PANDAS.format(BY_CLOCK), ()),
    ("a timeout by event time", IN_PANDAS.format(BY_EVENT), ()),
    ("one of two has one", IN_PANDAS.format(NONE) + IN_PANDAS.format(BY_EVENT), ()),
    ("only the other kind has one", IN_PANDAS.format(BY_EVENT) + IN_SCALA.format(NONE), OF_SCALA),
    ("an aggregation", PHYSICAL, ()),
)
def test_a_function_without_a_timeout_is_told_by_its_name_in_progress(plan, names):
    assert without_timeout(plan) == names
    assert read_physical(plan)["stateful"]


SLIDES = (
    "+- *(1) Expand [[named_struct(start, f(t#0, 1), end, g(t#0)), v#1L], [named_struct(start, t#0), v#1L]{}], [w#6]"
)


@cases(
    "plan, rows",
    ("no Expand", PHYSICAL, 1),
    ("two windows", SLIDES.format(""), 2),
    ("a list that Spark cuts", SLIDES.format(", ... 275 more fields"), 277),
    ("the widest", SLIDES.format("") + "\n" + SLIDES.format(", [w#3, v#1L]"), 3),
    ("grouping sets", "+- Expand [[v#1L, null, 1], [null, null, 3]], [v#55L, g#54L]", 2),
)
def test_an_expand_makes_several_rows_of_each_row(plan, rows):
    assert rows_made(plan) == rows


LONG = "precisetimestampconversion(t#2-T5000ms, TimestampType, LongType)"
OVER = f"({LONG} - CASE WHEN ((({LONG} - 0) % 10000000) < 0) THEN ((({LONG} - 0) % 10000000) + 10000000) END) - 0"
START = f"precisetimestampconversion(({OVER}), LongType, TimestampType)"
WINDOW = f"named_struct(start, {START}, end, precisetimestampconversion((({OVER}) + {{}}), LongType, TimestampType))"


@cases(
    "plan, seconds",
    ("none", PHYSICAL, None),
    ("only its beginning", START, None),
    ("one", WINDOW.format(10_000_000), 10.0),
    ("the longest of two", f"{WINDOW.format(86_400_000_000)}, {WINDOW.format(10_000_000)}", 86400.0),
    ("of instants without a time zone", WINDOW.format(500_000).replace("TimestampType", "TimestampNTZType"), 0.5),
)
def test_the_length_of_a_window_is_read_from_its_end(plan, seconds):
    assert longest_window(plan) == seconds
