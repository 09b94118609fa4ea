import contextlib
import math
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
from tests.tables import cases


class Bench:
    def __init__(self, *runs, sessions, size=100):
        self.now = T0
        self.clock_set_by = 0.0  # seconds that the machine's clock was put forward, or back
        self.queue = EventQueue(SelfStats(), size)
        self.run, self.roster = next(iter(runs), None), roster_of(*runs)
        clock = lambda: self.now + self.clock_set_by  # noqa: E731
        self.dog = Watchdog(self.queue, self.roster, lambda: sessions, clock, steady=lambda: self.now)

    def vanish(self, up=True):
        """After a first look the query has ended, and so has its session unless it is `up`."""
        self.look_until(1)
        self.session.queries, self.session.up = [], up

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


def bench_of(handle, session=None, size=100, **changes):
    """A bench with one session, in which a query runs."""
    session = session or FakeSession()
    bench = Bench(working(session, handle, **changes), sessions=[session], size=size)
    bench.session = session
    return bench


WAITING = {"working": False}  # a query between two triggers


def test_a_batch_that_does_not_end_is_reported_every_five_seconds():
    data = {"run_id": "run-1", "since": T0, "message": "Processing new data"}
    assert bench_of(FakeQuery()).look_until(14) == [(at, "batch_running", data) for at in (4, 9, 14)]


@pytest.mark.parametrize("seconds", [-3600.0, 3600.0], ids=["back", "forward"])
def test_a_batch_that_does_not_end_is_reported_as_before_when_the_clock_is_set(seconds):
    bench = bench_of(FakeQuery())
    before = bench.look_until(5)
    bench.clock_set_by = seconds
    assert [at for at, *_ in before + bench.look_until(14)] == [4, 9, 14]


@pytest.mark.parametrize("seconds", [-3600.0, 3600.0], ids=["back", "forward"])
def test_a_run_is_neither_lost_nor_stuck_because_the_clock_is_set(seconds):
    bench = bench_of(FakeQuery(), last_seen=T0 + 4)
    bench.look_until(5)
    bench.clock_set_by = seconds
    found = bench.look_until(6)
    bench.run.last_seen = T0 + 6 + seconds  # a batch has ended since

    assert found + bench.look_until(9) == []
    assert [at for at, *_ in bench.look_until(10)] == [10]


@cases(
    "handle, changes, reported",
    ("a batch that does not end", FakeQuery(), {}, [4, 9, 14, 19]),
    ("the patience grows with the trigger interval", FakeQuery(), {"interval": 10.0}, [21]),
    ("a source that does not answer", FakeQuery("Getting offsets from KafkaV2"), {}, [12, 17, 22]),
    ("idle for longer than the next idle event takes", FakeQuery(), {"idle": True}, [13, 18]),
    ("between triggers", FakeQuery("Waiting for next trigger", **WAITING), {}, []),
)
def test_what_is_stuck_is_reported_when_its_time_is_over(handle, changes, reported):
    assert [at for at, *_ in bench_of(handle, **changes).look_until(22)] == reported


def test_it_is_silent_while_batches_come_in_time():
    bench = bench_of(FakeQuery())
    for second in range(3, 31, 3):
        assert bench.look_until(second) == []
        bench.run.last_seen = bench.now


def test_while_batches_come_in_time_only_the_list_is_asked_for():
    bench, asked = bench_of(FakeQuery()), []
    bench.session.active = lambda: asked.append("list") or bench.session.queries
    for _ in range(100):
        bench.now += 1
        bench.run.last_seen = bench.now - 0.5
        bench.dog.collect()
    assert asked == ["list"] * 10


@pytest.mark.parametrize("up", [True, False], ids=["the event was lost", "the session was stopped"])
def test_what_is_held_for_a_query_that_vanished_is_let_go(up):
    bench = bench_of(FakeQuery(**WAITING))
    bench.vanish(up)
    bench.look_until(40)
    assert bench.session.let_go == ["run-1"]


@pytest.mark.parametrize("sessions", [0, 1], ids=["detached", "running"])
def test_nothing_is_let_go_while_the_query_goes_on(sessions):
    session = FakeSession()
    bench = Bench(working(session, FakeQuery(**WAITING)), sessions=[session][:sessions])
    bench.look_until(40)
    assert session.let_go == []


class Unreachable(FakeQuery):
    """A handle whose server or JVM is gone."""

    def exception(self):
        raise ConnectionError("nobody answers")


LOST = {"lost": True}


@cases(
    "handle, up, at, exception, more",
    ("Spark knows of no exception", FakeQuery(**WAITING), True, 21, None, {}),
    ("it failed", FakeQuery(problem=ValueError("bad"), **WAITING), True, 21, "bad", {}),
    ("nobody can say how it ended", Unreachable(**WAITING), True, 21, None, LOST),
    ("the application stopped its session", Unreachable(**WAITING), False, 15, None, {}),
)
def test_a_run_that_vanished_has_ended_and_is_lost_where_nobody_can_say_how(handle, up, at, exception, more):
    bench = bench_of(handle)
    bench.vanish(up)
    data = {"id": "id-1", "runId": "run-1", "exception": exception, "errorClassOnException": None, **more}
    assert bench.look_until(40) == [(at, "terminated", data)]


class Dead(FakeSession):
    """A session whose server was killed."""

    def active(self):
        raise TimeoutError("the Connect server does not answer")


def looked_a_minute(bench, answers_from=math.inf):
    """All that is reported of a server that was killed in a minute; or answers again from this second on."""
    found = []
    for second in range(60):
        bench.now += 1
        if second == answers_from:
            bench.session.active = lambda: bench.session.queries
        with contextlib.suppress(TimeoutError):
            bench.dog.collect()
        found += [(bench.now - T0, kind, data.get("lost")) for kind, data in taken(bench.queue)]
    return found


def test_the_runs_of_a_server_that_was_killed_are_lost_within_half_a_minute_unless_it_answers_again():
    [(after, kind, lost)] = looked_a_minute(bench_of(FakeQuery(**WAITING), Dead()))
    assert (kind, lost) == ("terminated", True)
    assert UNREACHABLE_SECONDS <= after <= 35
    assert looked_a_minute(bench_of(FakeQuery(**WAITING), Dead()), answers_from=15) == []


def test_a_question_to_a_connect_server_that_is_gone_is_given_up(monkeypatch):
    monkeypatch.setattr("ledgerops.agent.sessions.CALL_SECONDS", 0.05)
    session, answer = FakeSession(), threading.Event()

    with pytest.raises(TimeoutError, match=r"the Connect server: no answer within 0\.05 s"):
        session.call(lambda: answer.wait(60))
    with pytest.raises(TimeoutError, match="an earlier question still has no answer"):
        session.call(lambda: 1)
    answer.set()
    until(session._questions._open.done)
    assert session.call(lambda: 1) == 1
    with pytest.raises(ZeroDivisionError):
        session.call(lambda: 1 / 0)


def test_an_end_that_finds_the_queue_full_is_reported_again():
    bench = bench_of(FakeQuery(**WAITING), size=1)
    bench.vanish()
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
    bench = Bench(working(session, FakeQuery(**WAITING)), sessions=sessions)
    assert bench.look_until(5) == []  # its first query is heard of before it is listed
    sessions.append(session)
    assert bench.look_until(60) == []


def test_a_run_whose_session_is_detached_and_attached_again_goes_on():
    before, after = FakeSession("before"), FakeSession("after")
    sessions = [before]
    bench = Bench(working(before, FakeQuery(**WAITING)), sessions=sessions)
    bench.look_until(5)
    sessions[:] = [after]
    after.queries = before.queries

    assert bench.look_until(60) == []
    assert [run.session for run in bench.roster.runs()] == [after]


def test_the_runs_of_a_session_that_was_stopped_and_detached_have_ended():
    session = FakeSession()
    session.up = False
    [(_, kind, data)] = Bench(working(session, FakeQuery()), sessions=[]).look_until(30)
    assert (kind, "unwatched" in data) == ("terminated", False)


def early(session):
    """A query that ran before we came."""
    session.queries = [ActiveQuery("id-9", "run-9", "early", FakeQuery(**WAITING))]
    return session


def test_sessions_that_come_and_go_leave_nothing_behind():
    sessions = []
    bench = Bench(sessions=sessions)
    for number in range(50):
        sessions[:] = [FakeSession(f"session-{number}")]
        bench.look_until(bench.now - T0 + 1)
    assert list(bench.dog._listed) == ["session-49"]


@pytest.mark.parametrize("readmitted", [False, True], ids=["it ran before we came", "attached again"])
def test_a_query_that_runs_already_gets_its_start(readmitted):
    bench = Bench(sessions=[early(FakeSession())])
    if readmitted:
        bench.roster._ended.append("run-9")
        bench.roster.readmit()
    [(_, kind, data)] = bench.look_until(1)
    assert (kind, data["id"], data["runId"], data["name"]) == ("started", "id-9", "run-9", "early")


def test_a_query_that_is_known_or_has_ended_gets_none():
    bench = bench_of(FakeQuery(**WAITING))
    bench.session.queries.append(ActiveQuery("id-2", "run-2", "gone", FakeQuery(**WAITING)))
    bench.roster._ended.append("run-2")
    assert bench.look_until(3) == []


def test_a_session_that_fails_does_not_hide_another():
    broken = FakeSession("broken")
    broken.active = lambda: 1 / 0
    bench = Bench(sessions=[broken, early(FakeSession("fine"))])
    with pytest.raises(ZeroDivisionError):
        bench.look_until(1)
    assert [kind for kind, _ in taken(bench.queue)] == ["started"]


class Broken:
    """PySpark's handle on a query of a gateway that is gone."""

    @property
    def status(self):
        raise ConnectionError("gateway away")


def test_a_query_whose_handle_fails_does_not_hide_another():
    session = FakeSession()
    runs = [run_of(session, name, handle=handle) for name, handle in [("run-1", Broken()), ("run-2", FakeQuery())]]
    session.queries = [ActiveQuery("id-1", run.run_id, "daily_counts", run.handle) for run in runs]
    bench = Bench(*runs, sessions=[session])
    bench.now += 4

    with pytest.raises(ConnectionError, match="gateway away"):
        bench.dog.collect()
    assert [data["run_id"] for _, data in taken(bench.queue)] == ["run-2"]


@cases(
    "plan, began, quiet",
    ("on a multiple of its interval", Plan("run-1", "processing_time", 2.0), 2.0, 4.0),
    ("two long intervals of silence", Plan("run-1", "processing_time", 300.0), 300.0, 600.0),
    ("back to back: with the end of the last", Plan("run-1", "processing_time", 0.0), 0.5, 3.0),
    ("real-time: one batch follows the other", Plan("run-1", "real_time", 300.0), 0.5, 12.0),
    ("the plan is not known", None, 0.5, 3.0),
)
def test_when_a_trigger_began_and_how_long_it_may_be_quiet(plan, began, quiet):
    run = run_of(FakeSession(), plan=plan, last_seen=T0 + 0.5)
    assert (trigger_began(run) - T0, quiet_seconds(run)) == (began, quiet)
