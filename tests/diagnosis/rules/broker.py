"""What the broker says when it is asked, added to a view that the fixture `history` built."""

from collections.abc import Sequence

from ledgerops.model.records import Heads
from ledgerops.signals.query_view import QueryView
from tests.diagnosis.conftest import TOPIC


def asked(
    view: QueryView,
    latest: Sequence[int] = (),
    earliest: Sequence[int] = (),
    later: float = 0.0,
    keeps: float | None = None,
    error: str | None = None,
    silent_for: float = 0.0,
    topic_id: str | None = None,
) -> QueryView:
    """The view `later` seconds on, at which the broker was asked; offsets are by partition of the one topic.

    With `error` it has not answered for `silent_for` seconds, but did so before.
    """
    now = view.now + later
    if error is not None and not view.history.heads:
        view.history.add_heads(Heads(now - silent_for - 1, {(TOPIC, "0"): 6000}, {(TOPIC, "0"): 0}))
    view.history.add_heads(
        Heads(
            at=now,
            latest={(TOPIC, str(p)): offset for p, offset in enumerate(latest)},
            earliest={(TOPIC, str(p)): offset for p, offset in enumerate(earliest)},
            retention_seconds={TOPIC: keeps} if keeps is not None else {},
            error=error,
            unreachable_since=now - silent_for if error else None,
            topic_ids={TOPIC: topic_id} if topic_id is not None else {},
        )
    )
    return QueryView(view.history, now, view.hosts, view.others)
