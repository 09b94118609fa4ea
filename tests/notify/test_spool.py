import sqlite3

import pytest

from ledgerops.errors import UserError
from ledgerops.notify.spool import BACKOFF_SECONDS, MAX_AGE_SECONDS, Spool
from ledgerops.notify.updates import Told


@pytest.fixture
def opened(tmp_path):
    """Opens the queue for senders, for `chat` alone where none are named."""
    made = []

    def begin(*senders, **options):
        made.append(Spool(tmp_path / "queue.db", senders or ("chat",), **options))
        return made[-1]

    yield begin
    for spool in made:
        spool.close()


@pytest.fixture
def spool(opened):
    return opened(most=3)


def told(began, now, **alerts):
    return Told(began, alerts, now)


def put(spool, name, group=None, severity="critical", now=0.0, told=None):
    return spool.put(name, group or name, severity, {"n": name}, now, told)


def due(spool, now=0.0, sender="chat"):
    """The name of what is to be sent."""
    found = spool.due(sender, now)
    return found and found.payload["n"]


def deliver(spool, now=0.0, sender="chat"):
    spool.done(sender, spool.due(sender, now).number, now)


def test_the_same_incident_is_accepted_once_while_it_waits_and_for_hours_after(spool):
    assert put(spool, "a") is True
    assert put(spool, "a", now=1.0) is False
    deliver(spool, 2.0)
    assert put(spool, "a", now=3600.0) is False
    assert put(spool, "a", now=5 * 3600.0) is True


def test_pages_go_before_tickets(spool):
    put(spool, "ticket", severity="warning")
    put(spool, "page", now=1.0)

    assert due(spool, 2.0) == "page"


def test_a_full_queue_refuses_what_is_new_and_takes_the_newer_state_of_a_group_that_waits(spool):
    for name in "abc":
        put(spool, name)

    with pytest.raises(OverflowError, match="the queue is full"):
        put(spool, "d", now=1.0, told=told(0.0, 1.0, d="critical"))
    assert spool.told("d") is None
    assert put(spool, "a", now=1.0) is False
    assert put(spool, "a resolved", "a", now=1.0) is True
    assert len(spool) == 3


def test_what_is_refused_leaves_the_older_state_of_its_group(opened):
    spool = opened(most=1)
    put(spool, "a", "group")
    assert due(spool) == "a", "it is being sent, so it keeps its place"

    with pytest.raises(OverflowError):
        put(spool, "b", "group", now=1.0)
    assert due(spool, 1.0) == "a"


def test_a_sender_whose_queue_is_full_does_not_refuse_for_the_others(opened):
    spool = opened("dead", "chat", most=2)
    for name in "abcd":
        try:
            put(spool, name)
        except OverflowError as error:
            assert "the queue is full (dead)" in str(error)
        deliver(spool)

    assert spool.backlog(1.0) == {"dead": (2, 1.0), "chat": (0, 0.0)}


def test_attempts_wait_longer_and_longer(spool):
    put(spool, "a")
    now, waits = 0.0, []
    for _ in range(7):
        waits.append(spool.again("chat", spool.due("chat", now).number, now))
        assert due(spool, now + waits[-1] - 0.1) is None
        now += waits[-1]

    assert waits == [*BACKOFF_SECONDS, BACKOFF_SECONDS[-1], BACKOFF_SECONDS[-1]]


def test_a_delivery_that_is_too_old_is_given_up(spool):
    put(spool, "a")

    assert spool.again("chat", spool.due("chat", 0.0).number, MAX_AGE_SECONDS) is not None
    assert spool.again("chat", spool.due("chat", 2 * MAX_AGE_SECONDS).number, MAX_AGE_SECONDS + 1.0) is None
    assert len(spool) == 0


FULL_DISK = "CREATE TRIGGER full BEFORE INSERT ON delivered BEGIN SELECT RAISE(FAIL, 'disk is full'); END"


def test_what_was_sent_is_not_due_again_while_the_disk_is_full(spool):
    put(spool, "a")
    put(spool, "b")
    spool._db.execute(FULL_DISK)
    with pytest.raises(sqlite3.Error, match="disk is full"):
        deliver(spool, 1.0)

    second = spool.due("chat", 2.0)
    assert second.payload == {"n": "b"}, "another group is not held up"
    with pytest.raises(sqlite3.Error):
        put(spool, "c", now=2.0)
    spool._db.execute("DROP TRIGGER full")
    spool.done("chat", second.number, now=3.0)

    assert (due(spool, 4.0), len(spool)) == (None, 0)
    assert put(spool, "a", now=5.0) is False, "it counts as delivered"


def test_a_newer_state_of_what_was_sent_on_a_full_disk_is_sent(spool):
    put(spool, "a", "group")
    spool._db.execute(FULL_DISK)
    with pytest.raises(sqlite3.Error):
        deliver(spool, 1.0)
    spool._db.execute("DROP TRIGGER full")
    put(spool, "b", "group", now=2.0)

    assert due(spool, 3.0) == "b"


def test_each_sender_has_a_queue_of_its_own(opened):
    spool = opened("chat", "mail")
    put(spool, "firing", "group")
    deliver(spool)
    spool.again("mail", spool.due("mail", 0.0).number, now=0.0)
    put(spool, "resolved", "group", now=1.0)

    assert due(spool, 1.0) == "resolved"
    assert due(spool, 1.0, "mail") == "resolved", "what it never sent is no longer true"


def test_a_failed_attempt_gives_way_to_the_newer_state_of_its_group(spool):
    put(spool, "firing", "group")
    sending = spool.due("chat", 0.0)
    put(spool, "resolved", "group", now=1.0)

    assert spool.again("chat", sending.number, now=2.0) == 0.0
    assert due(spool, 2.0) == "resolved"


def test_what_waits_for_a_sender_that_is_gone_goes_to_the_others(opened):
    first = opened("chat", "mail")
    put(first, "a")
    deliver(first, sender="mail")
    first.close()
    second = opened("pager", "mail")

    assert due(second, sender="pager") == "a"
    assert due(second, sender="mail") is None, "it has delivered this one"
    assert due(second, sender="chat") is None


def test_the_first_diagnosis_of_an_incident_is_kept(spool):
    put(spool, "a", "group", told=told(1.0, 0.0, a="critical"))
    spool.remember("group", {"orders": {"health": 41}})
    spool.remember("group", {"orders": {"health": 10}})
    put(spool, "b", "group", now=1.0, told=told(1.0, 1.0))
    assert spool.recall("group") == {"orders": {"health": 41}}

    put(spool, "c", "group", now=2.0, told=told(2.0, 2.0, b="critical"))
    assert spool.recall("group") == {}
    spool.remember("group", {"orders": {"health": 5}})
    assert spool.recall("group") == {"orders": {"health": 5}}


def test_what_was_told_of_an_incident_outlives_a_restart(opened):
    first = opened()
    assert first.told("group") is None
    put(first, "a", "group", told=told(1.0, 0.0, a="critical"))
    first.close()

    assert opened().told("group") == Told(1.0, {"a": "critical"}, 0.0)


def test_incidents_that_never_end_leave_nothing_behind(spool):
    for day in range(30):
        now = 86400.0 * day
        put(spool, f"{day}", f"group {day}", now=now, told=told(0.0, now, a="critical"))
        deliver(spool, now)

    assert [day for day in range(30) if spool.told(f"group {day}")] == list(range(22, 30))


def test_a_place_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(UserError, match="cannot keep the queue in"):
        Spool(tmp_path / "file" / "queue.db", ["chat"])


def test_two_services_cannot_share_a_queue(opened):
    first = opened()

    with pytest.raises(UserError, match="is in use by another ledgerops notify"):
        opened()
    first.close()
    opened()


def test_only_the_owner_may_read_the_queue(spool, tmp_path):
    put(spool, "a")

    assert {each.name: oct(each.stat().st_mode & 0o777) for each in tmp_path.iterdir()} == dict.fromkeys(
        ("queue.db", "queue.db-shm", "queue.db-wal", "queue.db.lock"), "0o600"
    )


def test_a_link_that_waits_where_the_lock_goes_is_not_followed(opened, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("kept")
    (tmp_path / "queue.db.lock").symlink_to(victim)

    with pytest.raises(UserError, match=r"cannot keep the queue in .*symbolic links"):
        opened()
    assert victim.read_text() == "kept"


def test_a_queue_may_be_a_link_to_another_folder(opened, tmp_path):
    (tmp_path / "queue.db").symlink_to(tmp_path / "elsewhere.db")
    opened().close()

    assert (tmp_path / "elsewhere.db").stat().st_size > 0
