import contextlib
import threading

import pytest

from ledgerops.agent.queue import EventQueue
from ledgerops.agent.sessions import ActiveQuery
from ledgerops.agent.watchdog import UNREACHABLE_SECONDS, Watchdog, quiet_seconds, trigger_began
from ledgerops.metrics.self_watch import SelfStats
from ledgerops.model.records import Plan
from tests.agent.fakes import FakeQuery, FakeSession, roster_of, run_of, taken
from tests.build import T0
from tests.programs import until


class Bench:
    def __init__(self, *runs, sessions, size=100):
        self.now = T0
        self.clock_set_by = 0.0  # seconds that the machine's clock was put forward, or back
        self.queue = EventQueue(SelfStats(), size)
        self.roster = roster_of(*runs)
        clock = lambda: self.now + self.clock_set_by  # noqa: E731
        self.dog = Watchdog(self.queue, self.roster, lambda: sessions, clock, steady=lambda: self.now)

    def look_until(self, seconds, step=1.0):
        """All that is reported while looking every `step` seconds up to `seconds` after T0."""
        found = []
        while self.now < T0 + seconds:
            self.now += step
            self.dog.collect()
            found += [(round(self.now - T0), *each) for each in taken(self.queue)]
        return found


def working(session, handle, **changes):
    session.queries = [ActiveQuery("id-1", "run-1", "daily_counts", handle)]
    return run_of(session, **changes)


def test_a_batch_that_does_not_end_is_reported_every_five_seconds():
    session = FakeSession()
    bench = Bench(working(session, FakeQuery()), sessions=[session])

    found = bench.look_until(14)

    data = {"run_id": "run-1", "since": T0, "message": "Processing new data"}
    assert found == [(4, "batch_running", data), (9, "batch_running", data), (14, "batch_running", data)]


@pytest.mark.parametrize("seconds", [-3600.0, 3600.0], ids=["back", "forward"])
def test_a_batch_that_does_not_end_is_reported_as_before_when_the_clock_is_set(seconds):
    session = FakeSession()
    bench = Bench(working(session, FakeQuery()), sessions=[session])

    before = bench.look_until(5)
    bench.clock_set_by = seconds
    assert [at for at, *_ in before + bench.look_until(14)] == [4, 9, 14]


@pytest.mark.parametrize("seconds", [-3600.0, 3600.0], ids=["back", "forward"])
def test_a_run_is_neither_lost_nor_stuck_because_the_clock_is_set(seconds):
    session = FakeSession()
    run = working(session, FakeQuery(), last_seen=T0 + 4)
    bench = Bench(run, sessions=[session])
    bench.look_until(5)
    bench.clock_set_by = seconds
    found = bench.look_until(6)
    run.last_seen = T0 + 6 + seconds  # a batch has ended since

    assert found + bench.look_until(9) == []
    assert [at for at, *_ in bench.look_until(10)] == [10]


def test_the_patience_grows_with_the_trigger_interval():
    session = FakeSession()
    bench = Bench(working(session, FakeQuery(), interval=10.0), sessions=[session])

    assert [at for at, *_ in bench.look_until(22)] == [21]


@pytest.mark.parametrize(
    ("handle", "changes"),
    [
        pytest.param(FakeQuery("Waiting for next trigger", working=False), {}, id="between triggers"),
        pytest.param(FakeQuery("Getting offsets from KafkaV2"), {}, id="looking for new data"),
        pytest.param(FakeQuery(), {"idle": True}, id="idle for less than the next idle event takes"),
    ],
)
def test_it_is_silent_when_nothing_is_stuck(handle, changes):
    session = FakeSession()
    bench = Bench(working(session, handle, **changes), sessions=[session])

    assert bench.look_until(11) == []


def test_it_is_silent_while_batches_come_in_time():
    session = FakeSession()
    run = working(session, FakeQuery())
    bench = Bench(run, sessions=[session])

    for second in range(3, 31, 3):
        assert bench.look_until(second) == []
        run.last_seen = bench.now


def test_a_source_that_does_not_answer_is_seen():
    session = FakeSession()
    bench = Bench(working(session, FakeQuery("Getting offsets from KafkaV2")), sessions=[session])

    assert [at for at, *_ in bench.look_until(13)] == [12]


def test_while_batches_come_in_time_only_the_list_is_asked_for():
    session = FakeSession()
    run = working(session, FakeQuery())
    bench = Bench(run, sessions=[session])
    for _ in range(100):
        bench.now += 1
        run.last_seen = bench.now - 0.5
        bench.dog.collect()

    assert bench.dog.calls == 10


def test_a_query_that_vanished_without_an_event_is_reported_as_ended():
    session = FakeSession()
    run = working(session, FakeQuery(working=False, problem="boom: it broke"))
    bench = Bench(run, sessions=[session])
    bench.look_until(1)
    session.queries = []

    found = bench.look_until(25)

    data = {"id": "id-1", "runId": "run-1", "exception": "boom: it broke", "errorClassOnException": None}
    assert found[0] == (21, "terminated", data)


@pytest.mark.parametrize("up", [True, False], ids=["the event was lost", "the session was stopped"])
def test_what_is_held_for_a_query_that_vanished_is_let_go(up):
    session = FakeSession()
    bench = Bench(working(session, FakeQuery(working=False)), sessions=[session])
    bench.look_until(1)
    session.queries, session.up = [] if up else session.queries, up
    bench.look_until(40)

    assert session.let_go == ["run-1"]


@pytest.mark.parametrize("sessions", [0, 1], ids=["detached", "running"])
def test_nothing_is_let_go_while_the_query_goes_on(sessions):
    session = FakeSession()
    bench = Bench(working(session, FakeQuery(working=False)), sessions=[session][:sessions])
    bench.look_until(40)

    assert session.let_go == []


class Unreachable(FakeQuery):
    """A handle whose server or JVM is gone."""

    def exception(self):
        raise ConnectionError("nobody answers")


@pytest.mark.parametrize(
    ("handle", "up", "lost"),
    [
        pytest.param(FakeQuery(working=False), True, False, id="Spark knows of no exception"),
        pytest.param(FakeQuery(working=False, problem=ValueError("bad")), True, False, id="it failed"),
        pytest.param(Unreachable(working=False), True, True, id="nobody can say how it ended"),
        pytest.param(Unreachable(working=False), False, False, id="the application stopped its session"),
    ],
)
def test_a_run_that_vanished_is_lost_where_nobody_can_say_how_it_ended(handle, up, lost):
    session = FakeSession()
    bench = Bench(working(session, handle), sessions=[session])
    bench.look_until(1)
    session.queries, session.up = [], up

    [(_, kind, data)] = bench.look_until(40)
    assert (kind, data.get("lost", False)) == ("terminated", lost)


class Dead(FakeSession):
    """A session whose server was killed."""

    def active(self):
        raise TimeoutError("the Connect server does not answer")


def test_the_runs_of_a_server_that_was_killed_are_lost_within_half_a_minute():
    session = Dead()
    bench = Bench(working(session, FakeQuery(working=False)), sessions=[session])
    found = []
    for _ in range(60):
        bench.now += 1
        with contextlib.suppress(TimeoutError):
            bench.dog.collect()
        found += [(bench.now - T0, kind, data.get("lost")) for kind, data in taken(bench.queue)]

    [(after, kind, lost)] = found
    assert (kind, lost) == ("terminated", True)
    assert UNREACHABLE_SECONDS <= after <= 35


def test_a_server_that_answers_again_in_time_loses_no_run():
    session = Dead()
    bench = Bench(working(session, FakeQuery(working=False)), sessions=[session])
    found = []
    for second in range(60):
        bench.now += 1
        if second == 15:
            session.active = lambda: session.queries
        with contextlib.suppress(TimeoutError):
            bench.dog.collect()
        found += taken(bench.queue)

    assert found == []


def test_a_question_to_a_connect_server_that_is_gone_is_given_up(monkeypatch):
    monkeypatch.setattr("ledgerops.agent.sessions.CALL_SECONDS", 0.05)
    session, answer = FakeSession(), threading.Event()

    with pytest.raises(TimeoutError, match="does not answer"):
        session.call(lambda: answer.wait(60))
    with pytest.raises(TimeoutError, match="still has not answered"):
        session.call(lambda: 1)
    answer.set()
    until(lambda: not session._waiting)
    assert session.call(lambda: 1) == 1


def test_what_a_question_raises_is_raised_here():
    with pytest.raises(ZeroDivisionError):
        FakeSession().call(lambda: 1 / 0)


def test_an_end_that_finds_the_queue_full_is_reported_again():
    session = FakeSession()
    bench = Bench(working(session, FakeQuery(working=False)), sessions=[session], size=1)
    bench.look_until(1)
    session.queries = []
    bench.queue.put("idle", "{}")
    for _ in range(30):
        bench.now += 1
        bench.dog.collect()
    assert [kind for kind, _ in taken(bench.queue)] == ["idle"]

    assert [kind for _, kind, _ in bench.look_until(60)] == ["terminated"]


def test_the_runs_of_a_session_that_was_detached_are_told_to_be_unwatched_and_asked_no_more():
    session, other = FakeSession("detached"), FakeSession("other")
    bench = Bench(working(session, FakeQuery()), sessions=[other])

    data = {"id": "id-1", "runId": "run-1", "exception": None, "errorClassOnException": None, "unwatched": True}
    assert bench.look_until(30) == [(11, "terminated", data)]


def test_a_session_that_has_just_been_attached_is_not_taken_for_detached():
    session, sessions = FakeSession(), []
    bench = Bench(working(session, FakeQuery(working=False)), sessions=sessions)
    assert bench.look_until(5) == []  # its first query is heard of before it is listed
    sessions.append(session)

    assert bench.look_until(60) == []


def test_a_run_whose_session_is_detached_and_attached_again_goes_on():
    before, after = FakeSession("before"), FakeSession("after")
    sessions = [before]
    bench = Bench(working(before, FakeQuery(working=False)), sessions=sessions)
    bench.look_until(5)
    sessions[:] = [after]
    after.queries = before.queries

    assert bench.look_until(60) == []
    assert [run.session for run in bench.roster.runs()] == [after]


def test_the_runs_of_a_session_that_was_stopped_and_detached_have_ended():
    session = FakeSession()
    session.up = False
    bench = Bench(working(session, FakeQuery()), sessions=[])

    [(_, kind, data)] = bench.look_until(30)
    assert (kind, "unwatched" in data) == ("terminated", False)


def test_a_session_that_is_attached_again_has_its_queries_taken_up_again():
    session = FakeSession()
    session.queries = [ActiveQuery("id-1", "run-1", "daily_counts", FakeQuery(working=False))]
    bench = Bench(sessions=[session])
    bench.roster._ended.append("run-1")
    bench.roster.readmit()

    assert [kind for _, kind, _ in bench.look_until(1)] == ["started"]


def test_sessions_that_come_and_go_leave_nothing_behind():
    sessions = []
    bench = Bench(sessions=sessions)
    for number in range(50):
        sessions[:] = [FakeSession(f"session-{number}")]
        bench.look_until(bench.now - T0 + 1)

    assert list(bench.dog._listed) == ["session-49"]


def test_a_query_that_ran_before_we_came_gets_its_start():
    session = FakeSession()
    session.queries = [ActiveQuery("id-9", "run-9", "early", FakeQuery(working=False))]
    bench = Bench(sessions=[session])

    [(_, kind, data)] = bench.look_until(1)

    assert (kind, data["id"], data["runId"], data["name"]) == ("started", "id-9", "run-9", "early")


def test_a_query_that_is_known_or_has_ended_gets_none():
    session = FakeSession()
    bench = Bench(working(session, FakeQuery(working=False)), sessions=[session])
    session.queries.append(ActiveQuery("id-2", "run-2", "gone", FakeQuery(working=False)))
    bench.roster._ended.append("run-2")

    assert bench.look_until(3) == []


def test_a_session_that_fails_does_not_hide_another():
    broken, fine = FakeSession("broken"), FakeSession("fine")
    broken.active = lambda: 1 / 0
    fine.queries = [ActiveQuery("id-9", "run-9", "early", FakeQuery(working=False))]
    bench = Bench(sessions=[broken, fine])

    with pytest.raises(ZeroDivisionError):
        bench.look_until(1)
    assert [kind for kind, _ in taken(bench.queue)] == ["started"]


def test_a_query_whose_handle_fails_does_not_hide_another():
    class Broken(FakeQuery):
        @property
        def status(self):
            raise ConnectionError("gateway away")

        @status.setter
        def status(self, value):
            pass

    session = FakeSession()
    runs = [run_of(session, name, handle=handle) for name, handle in [("run-1", Broken()), ("run-2", FakeQuery())]]
    session.queries = [ActiveQuery("id-1", run.run_id, "daily_counts", run.handle) for run in runs]
    bench = Bench(*runs, sessions=[session])
    bench.now += 4

    with pytest.raises(ConnectionError, match="gateway away"):
        bench.dog.collect()
    assert [data["run_id"] for _, data in taken(bench.queue)] == ["run-2"]


def test_the_trigger_began_on_a_multiple_of_its_interval():
    session = FakeSession()

    assert trigger_began(run_of(session, interval=2.0, last_seen=T0 + 0.5)) == T0 + 2
    assert trigger_began(run_of(session, interval=0.0, last_seen=T0 + 0.5)) == T0 + 0.5
    assert trigger_began(run_of(session, plan=None, last_seen=T0 + 0.5)) == T0 + 0.5


def test_a_query_whose_batches_follow_without_a_pause_is_looked_at_while_one_runs():
    session = FakeSession()
    real_time = run_of(session, last_seen=T0 + 0.5, plan=Plan("run-1", "real_time", 300.0))

    assert trigger_began(real_time) == T0 + 0.5
    assert quiet_seconds(real_time) == 12.0
    assert quiet_seconds(run_of(session, interval=300.0, last_seen=T0 + 0.5)) == 600.0
