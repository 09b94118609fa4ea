"""What a Spark Connect client knows of the queries that it starts, from the real messages of its protocol."""

from dataclasses import replace

import pytest

from ledgerops.agent.connect_plan import MAX_PLANS, SentPlans, plan_of
from ledgerops.agent.plan import read_plan
from ledgerops.model.records import Plan
from tests.agent.fakes import FakeSession, run_of
from tests.tables import cases

proto = pytest.importorskip("pyspark.sql.connect.proto")

EXPLAINED = """== Analyzed Logical Plan ==
WriteToMicroBatchDataSource noop-table
+- EventTimeWatermark event_time#12: timestamp, 1 minutes 30 seconds

== Physical Plan ==
*(5) HashAggregate(keys=[key#2], functions=[count(1)])
+- StateStoreSave [key#2], state info [ ], Update, 2
   +- Exchange hashpartitioning(key#2, 2), REQUIRED_BY_STATEFUL_OPERATOR
"""


def sent(**fields):
    """The command of a query over a union of two sources, of which one has a cap."""
    command = proto.WriteStreamOperationStart(**fields)
    left = command.input.set_op.left_input.read
    left.is_streaming = True
    left.data_source.options.update({"maxOffsetsPerTrigger": "500", "subscribe": "orders"})
    command.input.set_op.right_input.read.data_source.options.update({"path": "/landing"})
    return command


class Writer:
    """Reports a start as PySpark's DataStreamWriter does: on the thread that started the query."""

    def __init__(self, command):
        self._write_proto = command

    def _start_internal(self, report):
        report("run-1")


@cases(
    "fields, trigger",
    ("interval", {"processing_time_interval": "2 seconds"}, ("processing_time", 2.0)),
    ("units", {"processing_time_interval": "1 minute 500 milliseconds"}, ("processing_time", 60.5)),
    ("none given: back to back", {}, ("processing_time", 0.0)),
    ("available now", {"available_now": True}, ("available_now", None)),
    ("once", {"once": True}, ("once", None)),
    ("continuous", {"continuous_checkpoint_interval": "1 second"}, ("continuous", 1.0)),
    ("no interval", {"processing_time_interval": "often"}, ("processing_time", None)),
)
def test_the_command_names_the_trigger(fields, trigger):
    plan = plan_of("run-1", sent(**fields))
    assert (plan.trigger, plan.trigger_interval) == trigger


def test_the_command_names_the_output_mode_and_the_caps_of_its_sources():
    caps = {"maxoffsetspertrigger": "500"}
    updating = Plan("run-1", "processing_time", 0.0, output_mode="update", rate_limits=caps)
    assert plan_of("run-1", sent(output_mode="Update")) == updating
    assert plan_of("run-1", sent()).output_mode == "append"


def test_a_start_is_remembered_from_the_writer_that_reports_it():
    plans = SentPlans()
    Writer(sent(available_now=True))._start_internal(plans.note)
    assert plans.get("run-1").trigger == "available_now"
    assert plans.get("run-2") is None


@pytest.mark.parametrize("command", [None, "text"], ids=["no command", "another kind of command"])
def test_another_version_of_pyspark_leaves_the_plan_unknown(command):
    plans = SentPlans()
    Writer(command)._start_internal(plans.note)
    plans.note("run-1")  # no writer on the stack
    assert plans.get("run-1") is None


def test_only_the_newest_plans_are_kept():
    plans = SentPlans()
    for number in range(MAX_PLANS + 1):
        Writer(sent())._start_internal(lambda _, run=f"run-{number}": plans.note(run))
    assert plans.get("run-0") is None
    assert plans.get("run-1") is not None and plans.get(f"run-{MAX_PLANS}") is not None


class Handle:
    """PySpark's handle on a query of a Connect server, which has explained its newest batch."""

    def __init__(self, text):
        self.runId, self.text = "run-1", text

    def _execute_streaming_query_cmd(self, command):
        assert command.explain.extended
        result = proto.StreamingQueryCommandResult()
        result.explain.result = self.text
        return result


def explained(text):
    """The plan of a query which the server explains so, and its session."""
    session = FakeSession()
    session.spark = None
    return session, run_of(session, handle=Handle(text))


def test_the_plan_is_what_was_sent_and_what_the_server_explains():
    session, run = explained(EXPLAINED)
    Writer(sent(processing_time_interval="2 seconds"))._start_internal(session.sent_plans.note)
    plan = read_plan(run)
    assert (plan.trigger, plan.trigger_interval, plan.output_mode) == ("processing_time", 2.0, "append")
    assert (plan.watermarks, plan.keys, plan.stateful) == ({"event_time": 90.0}, ("key",), True)


def test_what_the_session_says_stays_known_after_the_first_batch():
    session, run = explained(EXPLAINED)
    session.setting = {"spark.sql.shuffle.partitions": "7"}.get
    Writer(sent(processing_time_interval="2 seconds"))._start_internal(session.sent_plans.note)
    before = replace(read_plan(run), sink="memory")
    session.setting = None
    after = read_plan(run, before)
    assert (before.shuffle_partitions, after.shuffle_partitions, after.sink) == (7, 7, "memory")
    assert after.keys == ("key",), "the server is asked all the same"


def test_before_the_first_batch_the_server_explains_nothing():
    _, run = explained("No physical plan. Waiting for data.")
    assert read_plan(run) == Plan("run-1")
