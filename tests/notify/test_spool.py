import pytest

from ledgerops.errors import UserError
from ledgerops.notify.spool import BACKOFF, Spool


@pytest.fixture
def spool(tmp_path):
    spool = Spool(tmp_path / "queue.db", most=3)
    yield spool
    spool.close()


def test_what_was_taken_is_there_after_a_restart(tmp_path):
    first = Spool(tmp_path / "queue.db")
    first.put("a", "a", "critical", {"n": 1}, now=0.0)
    first.close()

    second = Spool(tmp_path / "queue.db")

    assert second.due(0.0).payload == {"n": 1}
    second.close()


def test_the_same_incident_is_taken_once_while_it_waits_and_for_hours_after(spool):
    assert spool.put("a", "a", "critical", {}, now=0.0) is True
    assert spool.put("a", "a", "critical", {}, now=1.0) is False
    spool.done(spool.due(1.0).number, now=2.0)
    assert spool.put("a", "a", "critical", {}, now=3600.0) is False
    assert spool.put("a", "a", "critical", {}, now=5 * 3600.0) is True


def test_pages_go_before_tickets(spool):
    spool.put("ticket", "ticket", "warning", {"n": "ticket"}, now=0.0)
    spool.put("page", "page", "critical", {"n": "page"}, now=1.0)

    assert spool.due(2.0).payload == {"n": "page"}


def test_a_full_queue_gives_a_tickets_place_to_a_page(spool):
    for name in ("a", "b", "c"):
        spool.put(name, name, "warning", {"n": name}, now=0.0)

    assert spool.put("page", "page", "critical", {"n": "page"}, now=1.0) is True
    assert len(spool) == 3
    with pytest.raises(OverflowError, match="3 incidents wait already"):
        spool.put("d", "d", "warning", {}, now=1.0)


def test_a_full_queue_of_pages_says_so_and_loses_none(spool):
    for name in ("a", "b", "c"):
        spool.put(name, name, "critical", {"n": name}, now=0.0)

    with pytest.raises(OverflowError):
        spool.put("d", "d", "critical", {}, now=1.0)
    assert len(spool) == 3


def test_attempts_wait_longer_and_longer(spool):
    spool.put("a", "a", "critical", {}, now=0.0)
    now, waits = 0.0, []
    for _ in range(7):
        waiting = spool.due(now)
        waits.append(spool.again(waiting.number, waiting.attempts, ("chat",), now))
        assert spool.due(now + waits[-1] - 0.1) is None
        now += waits[-1]

    assert waits == [*BACKOFF, BACKOFF[-1], BACKOFF[-1]]
    assert spool.due(now).delivered == ("chat",)


def test_what_an_incident_began_with_is_told_once(spool):
    spool.remember("group", {"health": 41}, now=0.0)
    spool.remember("group", {"health": 10}, now=1.0)

    assert spool.recall("group") == {"health": 41}
    assert spool.recall("group") is None


def test_incidents_whose_end_is_never_told_leave_nothing_behind(spool):
    for day in range(30):
        spool.remember(f"group {day}", {"health": day}, now=86400.0 * day)

    assert [day for day in range(30) if spool.recall(f"group {day}")] == list(range(22, 30))


def test_a_place_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(UserError, match="cannot keep the queue in"):
        Spool(tmp_path / "file" / "queue.db")


def test_of_a_group_the_oldest_goes_first_and_only_what_nobody_heard_of_is_replaced(spool):
    spool.put("a", "group", "critical", {"n": "firing"}, now=0.0)
    first = spool.due(0.0)
    spool.again(first.number, first.attempts, ("chat",), now=0.0)
    spool.put("b", "group", "critical", {"n": "resolved"}, now=1.0)

    assert spool.due(1.0) is None, "the older one waits for its next attempt"
    assert spool.due(10.0).payload == {"n": "firing"}


def test_two_services_cannot_share_a_queue(tmp_path):
    first = Spool(tmp_path / "queue.db")

    with pytest.raises(UserError, match="is in use by another ledgerops notify"):
        Spool(tmp_path / "queue.db")
    first.close()
    Spool(tmp_path / "queue.db").close()
