import sqlite3

import pytest

from ledgerops.errors import UserError
from ledgerops.notify.spool import BACKOFF_SECONDS, MAX_AGE_SECONDS, Spool
from ledgerops.notify.updates import Told


@pytest.fixture
def spool(tmp_path):
    spool = Spool(tmp_path / "queue.db", ["chat"], most=3)
    yield spool
    spool.close()


def test_what_was_accepted_is_there_after_a_restart(tmp_path):
    first = Spool(tmp_path / "queue.db", ["chat"])
    first.put("a", "a", "critical", {"n": 1}, now=0.0)
    first.close()

    second = Spool(tmp_path / "queue.db", ["chat"])

    assert second.due("chat", 0.0).payload == {"n": 1}
    second.close()


def test_the_same_incident_is_accepted_once_while_it_waits_and_for_hours_after(spool):
    assert spool.put("a", "a", "critical", {}, now=0.0) is True
    assert spool.put("a", "a", "critical", {}, now=1.0) is False
    spool.done("chat", spool.due("chat", 1.0).number, now=2.0)
    assert spool.put("a", "a", "critical", {}, now=3600.0) is False
    assert spool.put("a", "a", "critical", {}, now=5 * 3600.0) is True


def test_pages_go_before_tickets(spool):
    spool.put("ticket", "ticket", "warning", {"n": "ticket"}, now=0.0)
    spool.put("page", "page", "critical", {"n": "page"}, now=1.0)

    assert spool.due("chat", 2.0).payload == {"n": "page"}


def test_a_full_queue_says_so_and_drops_nothing(spool):
    for name in ("a", "b", "c"):
        spool.put(name, name, "warning", {"n": name}, now=0.0)

    with pytest.raises(OverflowError, match="the queue is full"):
        spool.put("d", "d", "critical", {}, now=1.0)
    assert len(spool) == 3
    assert spool.put("a", "a", "warning", {}, now=1.0) is False


def test_a_full_queue_takes_the_newer_state_of_a_group_that_waits(spool):
    for name in ("a", "b", "c"):
        spool.put(name, name, "critical", {"n": name}, now=0.0)

    assert spool.put("a resolved", "a", "critical", {"n": "a resolved"}, now=1.0) is True
    assert len(spool) == 3


def test_what_is_refused_leaves_the_older_state_of_its_group(tmp_path):
    spool = Spool(tmp_path / "queue.db", ["chat"], most=1)
    spool.put("a", "group", "critical", {"n": "a"}, now=0.0)
    assert spool.due("chat", 0.0) is not None, "it is being sent, so it keeps its place"

    with pytest.raises(OverflowError):
        spool.put("b", "group", "critical", {"n": "b"}, now=1.0)
    assert spool.due("chat", 1.0).payload == {"n": "a"}
    spool.close()


def test_attempts_wait_longer_and_longer(spool):
    spool.put("a", "a", "critical", {}, now=0.0)
    now, waits = 0.0, []
    for _ in range(7):
        waits.append(spool.again("chat", spool.due("chat", now).number, now))
        assert spool.due("chat", now + waits[-1] - 0.1) is None
        now += waits[-1]

    assert waits == [*BACKOFF_SECONDS, BACKOFF_SECONDS[-1], BACKOFF_SECONDS[-1]]


def test_a_delivery_that_is_too_old_is_given_up(spool):
    spool.put("a", "a", "critical", {}, now=0.0)

    assert spool.again("chat", spool.due("chat", 0.0).number, MAX_AGE_SECONDS) is not None
    assert spool.again("chat", spool.due("chat", 2 * MAX_AGE_SECONDS).number, MAX_AGE_SECONDS + 1.0) is None
    assert len(spool) == 0


def test_what_was_sent_is_not_due_again_while_the_disk_is_full(spool):
    spool.put("a", "a", "critical", {"n": 1}, now=0.0)
    spool.put("b", "b", "critical", {"n": 2}, now=0.0)
    full = "CREATE TRIGGER full BEFORE INSERT ON delivered BEGIN SELECT RAISE(FAIL, 'disk is full'); END"
    spool._db.execute(full)
    with pytest.raises(sqlite3.Error, match="disk is full"):
        spool.done("chat", spool.due("chat", 1.0).number, now=1.0)

    second = spool.due("chat", 2.0)
    assert second.payload == {"n": 2}, "another group is not held up"
    with pytest.raises(sqlite3.Error):
        spool.put("c", "c", "critical", {}, now=2.0)
    spool._db.execute("DROP TRIGGER full")
    spool.done("chat", second.number, now=3.0)

    assert (spool.due("chat", 4.0), len(spool)) == (None, 0)
    assert spool.put("a", "a", "critical", {"n": 1}, now=5.0) is False, "it counts as delivered"


def test_a_newer_state_of_what_was_sent_on_a_full_disk_is_sent(spool):
    spool.put("a", "group", "critical", {"n": 1}, now=0.0)
    spool._db.execute("CREATE TRIGGER full BEFORE INSERT ON delivered BEGIN SELECT RAISE(FAIL, 'disk is full'); END")
    with pytest.raises(sqlite3.Error):
        spool.done("chat", spool.due("chat", 1.0).number, now=1.0)
    spool._db.execute("DROP TRIGGER full")

    spool.put("b", "group", "critical", {"n": 2}, now=2.0)

    assert spool.due("chat", 3.0).payload == {"n": 2}


def test_each_sender_has_a_queue_of_its_own(tmp_path):
    spool = Spool(tmp_path / "queue.db", ["chat", "mail"])
    spool.put("a", "group", "critical", {"n": "firing"}, now=0.0)
    spool.done("chat", spool.due("chat", 0.0).number, now=0.0)
    spool.again("mail", spool.due("mail", 0.0).number, now=0.0)
    spool.put("b", "group", "critical", {"n": "resolved"}, now=1.0)

    assert spool.due("chat", 1.0).payload == {"n": "resolved"}
    assert spool.due("mail", 1.0).payload == {"n": "resolved"}, "what it never sent is no longer true"
    spool.close()


def test_a_failed_attempt_gives_way_to_the_newer_state_of_its_group(spool):
    spool.put("a", "group", "critical", {"n": "firing"}, now=0.0)
    sending = spool.due("chat", 0.0)
    spool.put("b", "group", "critical", {"n": "resolved"}, now=1.0)

    assert spool.again("chat", sending.number, now=2.0) == 0.0
    assert spool.due("chat", 2.0).payload == {"n": "resolved"}


def test_what_waits_for_a_sender_that_is_gone_goes_to_the_others(tmp_path):
    first = Spool(tmp_path / "queue.db", ["chat", "mail"])
    first.put("a", "a", "critical", {"n": 1}, now=0.0)
    first.done("mail", first.due("mail", 0.0).number, now=0.0)
    first.close()

    second = Spool(tmp_path / "queue.db", ["pager", "mail"])

    assert second.due("pager", 0.0).payload == {"n": 1}
    assert second.due("mail", 0.0) is None, "it has delivered this one"
    assert second.due("chat", 0.0) is None
    second.close()


def told(began, now, **alerts):
    return Told(began, alerts, now)


def test_the_first_diagnosis_of_an_incident_is_kept(spool):
    spool.put("a", "group", "critical", {}, 0.0, told(1.0, 0.0, a="critical"))
    spool.remember("group", {"orders": {"health": 41}})
    spool.remember("group", {"orders": {"health": 10}})
    spool.put("b", "group", "critical", {}, 1.0, told(1.0, 1.0))
    assert spool.recall("group") == {"orders": {"health": 41}}

    spool.put("c", "group", "critical", {}, 2.0, told(2.0, 2.0, b="critical"))
    assert spool.recall("group") == {}
    spool.remember("group", {"orders": {"health": 5}})
    assert spool.recall("group") == {"orders": {"health": 5}}


def test_what_was_told_of_an_incident_outlives_a_restart(tmp_path):
    first = Spool(tmp_path / "queue.db", ["chat"])
    assert first.told("group") is None
    first.put("a", "group", "critical", {}, 0.0, told(1.0, 0.0, a="critical"))
    first.close()

    second = Spool(tmp_path / "queue.db", ["chat"])
    assert second.told("group") == Told(1.0, {"a": "critical"}, 0.0)
    second.close()


def test_what_is_refused_was_not_told(spool):
    for name in ("a", "b", "c"):
        spool.put(name, name, "critical", {}, now=0.0)

    with pytest.raises(OverflowError):
        spool.put("d", "d", "critical", {}, 1.0, told(0.0, 1.0, d="critical"))
    assert spool.told("d") is None


def test_incidents_that_never_end_leave_nothing_behind(spool):
    for day in range(30):
        now = 86400.0 * day
        spool.put(f"{day}", f"group {day}", "critical", {}, now, told(0.0, now, a="critical"))
        spool.done("chat", spool.due("chat", now).number, now)

    assert [day for day in range(30) if spool.told(f"group {day}")] == list(range(22, 30))


def test_a_place_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(UserError, match="cannot keep the queue in"):
        Spool(tmp_path / "file" / "queue.db", ["chat"])


def test_two_services_cannot_share_a_queue(tmp_path):
    first = Spool(tmp_path / "queue.db", ["chat"])

    with pytest.raises(UserError, match="is in use by another ledgerops notify"):
        Spool(tmp_path / "queue.db", ["chat"])
    first.close()
    Spool(tmp_path / "queue.db", ["chat"]).close()


def test_only_the_owner_may_read_the_queue(tmp_path):
    spool = Spool(tmp_path / "queue.db", ["chat"])
    spool.put("a", "a", "critical", {}, now=0.0)

    assert {each.name: oct(each.stat().st_mode & 0o777) for each in tmp_path.iterdir()} == dict.fromkeys(
        ("queue.db", "queue.db-shm", "queue.db-wal", "queue.db.lock"), "0o600"
    )
    spool.close()


def test_a_link_that_waits_where_the_lock_goes_is_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("kept")
    (tmp_path / "queue.db.lock").symlink_to(victim)

    with pytest.raises(UserError, match=r"cannot keep the queue in .*symbolic links"):
        Spool(tmp_path / "queue.db", ["chat"])
    assert victim.read_text() == "kept"


def test_a_queue_may_be_a_link_to_another_folder(tmp_path):
    (tmp_path / "queue.db").symlink_to(tmp_path / "elsewhere.db")
    Spool(tmp_path / "queue.db", ["chat"]).close()

    assert (tmp_path / "elsewhere.db").stat().st_size > 0
