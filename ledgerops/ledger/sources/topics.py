"""The ledger's topics: which there are, and how they are made and checked on any broker."""

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import ConfigResource, NewTopic

from ledgerops.common.format import counted
from ledgerops.common.kafka import KafkaClient, reach, reason_of
from ledgerops.errors import UserError

ANSWER_SECONDS = 15.0  # for one answer of a broker that was reached


@dataclass(frozen=True)
class Topic:
    """A topic as it must be; a compacted one keeps the last record of each key for ever."""

    name: str
    partitions: int
    compacted: bool
    holds: str


TOPICS = (
    Topic("transactions", 5, False, "transactions, by customer_id"),
    Topic("customers", 1, True, "customers, by customer_id"),
    Topic("accounts", 1, True, "accounts, by account_id"),
    Topic("transactions.debits", 5, False, "transactions of type Debit"),
    Topic("transactions.credits", 5, False, "transactions of type Credit"),
    Topic("ad_events", 5, False, "views and clicks of advertisements"),
    Topic("dead_letters", 1, False, "records that could not be read, with the reason"),
)


def named(prefix: str = "") -> dict[str, Topic]:
    """The topics by their name on the broker. UserError for a prefix that no topic may begin with."""
    if not re.fullmatch(r"[A-Za-z0-9._-]{0,200}", prefix):
        raise UserError(f"invalid topic prefix: {prefix!r}; use letters, digits, dots, hyphens and underscores")
    return {prefix + topic.name: topic for topic in TOPICS}


def create(client: KafkaClient, prefix: str = "", replication: int = -1) -> tuple[str, ...]:
    """Makes the topics that are missing and returns their names; those that are there stay as they are.

    `replication` is the number of replicas, -1 the broker's default. Raises UserError when the broker does not answer
    or refuses, and for the first topic that is not as it must be.
    """
    wanted = named(prefix)
    admin = reach(client)
    missing = _missing(admin, client, wanted)
    new = [
        NewTopic(
            name,
            wanted[name].partitions,
            replication,
            config={"cleanup.policy": "compact" if wanted[name].compacted else "delete"},
        )
        for name in missing
    ]
    if new:
        for name, done in admin.create_topics(new, request_timeout=ANSWER_SECONDS).items():
            _made(name, done, client)
        _wait_until_listed(admin, client, wanted)
    return missing


def missing_topics(client: KafkaClient, prefix: str = "") -> tuple[str, ...]:
    """The names of the ledger's topics that the broker does not have; changes nothing.

    Raises UserError without an answer, and for the first topic that is not as it must be.
    """
    return _missing(reach(client), client, named(prefix))


def _made(name: str, done: Any, client: KafkaClient) -> None:
    try:
        done.result(ANSWER_SECONDS)
    except KafkaException as error:
        # somebody else was quicker; whether it is as it must be is looked at afterwards
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise UserError(f"cannot create topic {name} at {client.servers}: {reason_of(client, error)}") from None


def _wait_until_listed(admin: Any, client: KafkaClient, wanted: Mapping[str, Topic]) -> None:
    """Returns once every topic has come to light: a broker may learn a moment later what the controller made."""
    end = time.monotonic() + ANSWER_SECONDS
    while missing := _missing(admin, client, wanted):
        if time.monotonic() > end:
            raise UserError(f"{client.servers} created topic {missing[0]} but does not list it; is the broker healthy?")
        time.sleep(0.1)


def _missing(admin: Any, client: KafkaClient, wanted: Mapping[str, Topic]) -> tuple[str, ...]:
    try:
        listed = admin.list_topics(timeout=ANSWER_SECONDS).topics
        present = [name for name in wanted if name in listed and listed[name].error is None]
        policies = _policies(admin, present)
    except KafkaException as error:
        raise UserError(f"cannot describe the topics of {client.servers}: {reason_of(client, error)}") from None
    for name in present:
        _check(name, wanted[name], len(listed[name].partitions), policies[name])
    return tuple(name for name in wanted if name not in present)


def _policies(admin: Any, names: Sequence[str]) -> dict[str, set[str]]:
    if not names:
        return {}
    asked = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in names]
    answers = admin.describe_configs(asked, request_timeout=ANSWER_SECONDS)
    return {
        resource.name: set(done.result(ANSWER_SECONDS)["cleanup.policy"].value.split(","))
        for resource, done in answers.items()
    }


def _check(name: str, topic: Topic, partitions: int, policy: set[str]) -> None:
    if partitions != topic.partitions:
        raise UserError(
            f"topic {name} has {counted(partitions, 'partition')}, expected {topic.partitions}; delete it and run "
            "ledgerops topics, or use another --prefix"
        )
    if ("compact" in policy) != topic.compacted:
        expected = "compact" if topic.compacted else "delete"
        raise UserError(
            f"topic {name} has cleanup.policy {','.join(sorted(policy))}, expected {expected}; "
            f"set it (kafka-configs --alter --topic {name} --add-config cleanup.policy={expected}), "
            "or use another --prefix"
        )
