"""Which states of an incident are worth a message."""

from typing import Any

from ledgerops.notify.incident import parse_webhook
from ledgerops.notify.updates import REMINDER_SECONDS, Told, next_told
from tests.notify.build import OVER, alert, webhook
from tests.tables import cases

BEGAN = 1772359200.123456
PAGE, OTHER, TICKET = ("LedgerSourceUnreachable", "critical"), ("LedgerQueryFailed", "critical"), ("Overrun", "warning")


def state(*firing: tuple[str, str], over: tuple[tuple[str, str], ...] = ()) -> Any:
    given = [alert(*each) for each in firing]
    given += [alert(*each, status="resolved", endsAt="2026-03-01T10:07:00Z") for each in over]
    return parse_webhook(webhook(*given))


def test_of_what_was_left_out_no_end_is_told():
    told = after(state(PAGE))
    ended = parse_webhook(webhook(alert(*PAGE, **OVER), truncatedAlerts=50))
    assert [next_told(ended, before, at) for before in (told, None) for at in (60.0, 2 * REMINDER_SECONDS)] == [
        None
    ] * 4
    assert next_told(parse_webhook(webhook(alert(*PAGE, **OVER))), told, 60.0) is not None
    assert next_told(parse_webhook(webhook(alert(*TICKET), truncatedAlerts=50)), told, 60.0) is None
    assert next_told(parse_webhook(webhook(alert(*OTHER), truncatedAlerts=50)), told, 60.0) is not None


def after(*states: Any, seconds: float = 60.0) -> Told:
    """What was told once these states came, one after the other."""
    told = None
    for number, each in enumerate(states):
        told = next_told(each, told, BEGAN + number * seconds) or told
    assert told is not None
    return told


@cases(
    "before, now",
    ("it begins", [], state(PAGE)),
    ("a ticket begins", [], state(TICKET)),
    ("a page after a ticket", [state(TICKET)], state(PAGE, TICKET)),
    ("another page", [state(PAGE)], state(PAGE, OTHER)),
    ("a ticket is left", [state(PAGE, TICKET)], state(TICKET, over=(PAGE,))),
    ("half of the pages are over", [state(PAGE, OTHER)], state(PAGE, over=(OTHER,))),
    ("all is over", [state(PAGE)], state(over=(PAGE,))),
    ("it begins again after its end", [state(PAGE), state(over=(PAGE,))], state(PAGE)),
    ("worse again", [state(PAGE, TICKET), state(TICKET, over=(PAGE,))], state(PAGE, TICKET)),
)
def test_what_somebody_on_call_wants_to_hear_is_told(before, now):
    told = after(*before) if before else None

    assert next_told(now, told, BEGAN + 600.0) is not None


@cases(
    "before, now",
    ("the same", [state(PAGE)], state(PAGE)),
    ("a ticket joins a page", [state(PAGE)], state(PAGE, TICKET)),
    ("a ticket is over, the page is not", [state(PAGE, TICKET)], state(PAGE, over=(TICKET,))),
    ("one of three", [state(PAGE, OTHER, ("A", "critical"))], state(PAGE, ("A", "critical"), over=(OTHER,))),
    ("the end, delivered twice", [state(PAGE), state(over=(PAGE,))], state(over=(PAGE,))),
)
def test_anything_else_is_not(before, now):
    told = after(*before)
    found = next_told(now, told, BEGAN + 600.0)

    assert found is None or (not told.alerts and not found.alerts), "a second end is the queue's to refuse"


def test_an_incident_that_goes_on_is_told_again_before_alertmanager_repeats_it():
    told = after(state(PAGE))

    again = BEGAN + REMINDER_SECONDS
    assert next_told(state(PAGE), told, again - 1) is None
    assert next_told(state(PAGE), told, again) == Told(BEGAN, told.alerts, again)


def test_an_incident_of_a_hundred_queries_that_end_one_by_one_is_a_few_messages():
    queries = [(f"A{number}", "critical") for number in range(100)]
    told, messages = after(state(*queries)), 0
    for gone in range(1, 101):
        if (
            found := next_told(state(*queries[gone:], over=(queries[gone - 1],)), told, BEGAN + 60.0 * gone)
        ) is not None:
            told, messages = found, messages + 1

    assert not told.alerts and messages <= 8


def test_an_incident_keeps_its_beginning_until_its_end():
    later = alert(*OTHER, startsAt="2026-03-01T11:00:00Z")
    told = after(state(PAGE), parse_webhook(webhook(later, alert(*PAGE, **OVER))))

    assert told.began == BEGAN


def test_a_page_whose_former_end_was_never_told_is_a_new_incident():
    later = parse_webhook(webhook(alert(*PAGE, startsAt="2026-03-01T11:00:00Z")))
    told = after(state(PAGE))

    found = next_told(later, told, BEGAN + 3600.0)

    assert found == Told(later.began, told.alerts, BEGAN + 3600.0)
    assert next_told(later, found, BEGAN + 3660.0) is None
