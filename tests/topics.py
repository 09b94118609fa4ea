"""Topics on a real broker, for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.programs import until

if TYPE_CHECKING:
    from confluent_kafka.admin import NewTopic


def make(admin: Any, *topics: NewTopic) -> None:
    """Makes them. The controller says so before the broker knows them, and it knows them before they have leaders."""
    for done in admin.create_topics(list(topics), request_timeout=60).values():
        done.result(60)
    for new in topics:
        until(lambda new=new: _led(admin, new), 60, f"leaders of {new.topic}")


def _led(admin: Any, new: NewTopic) -> bool:
    known = admin.list_topics(new.topic, timeout=60).topics[new.topic]
    return sum(each.leader >= 0 for each in known.partitions.values()) == new.num_partitions
