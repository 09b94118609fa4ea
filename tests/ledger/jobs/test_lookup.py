"""The cache by a clock of its own, over a database that can be taken away."""

import pytest

from ledgerops.ledger.jobs.databases import LookupFailed, Unreachable
from ledgerops.ledger.jobs.lookup import Lookup


class World:
    """A table, its clock, and every question that was put to it."""

    label = "accounts in postgresql://me@db/bank"

    def __init__(self, **rows):
        self.rows, self.now, self.asked, self.down = rows, 1000.0, [], 0.0

    def clock(self):
        return self.now

    def wait(self, seconds):
        self.now += seconds

    def fetch(self, keys):
        self.asked.append(list(keys))
        if self.now < self.down:
            raise Unreachable("connection refused")
        return {key: self.rows[key] for key in keys if key in self.rows}

    def lookup(self, **options):
        return Lookup(self, clock=self.clock, wait=self.wait, **options)


def test_many_keys_are_one_question_and_what_is_remembered_is_not_asked_again_found_or_not():
    world = World(A1=(1,), A2=(2,))
    lookup = world.lookup()
    assert lookup.rows(["A2", "A1", "A2", "A3"]) == {"A1": (1,), "A2": (2,), "A3": None}
    assert world.asked == [["A2", "A1", "A3"]]

    world.now += 9.9
    assert lookup.rows(["A1", "A3", "A4"]) == {"A1": (1,), "A3": None, "A4": None}
    assert lookup.rows([]) == {}
    assert world.asked[1:] == [["A4"]]


def test_a_change_is_seen_once_the_time_to_live_has_passed_and_not_before():
    world = World(A1=(1,))
    lookup = world.lookup(ttl=10.0)
    lookup.rows(["A1", "A2"])
    world.rows = {"A1": ("new",), "A2": ("born",)}

    world.now += 9.9
    assert lookup.rows(["A1", "A2"]) == {"A1": (1,), "A2": None}
    world.now += 0.1
    assert lookup.rows(["A1", "A2"]) == {"A1": ("new",), "A2": ("born",)}


def test_the_cache_keeps_the_newest_and_the_answer_is_whole_though_it_is_full():
    world = World(**{f"A{n}": (n,) for n in range(10)})
    lookup = world.lookup(capacity=3)

    assert lookup.rows([f"A{n}" for n in range(10)]) == {f"A{n}": (n,) for n in range(10)}
    assert len(lookup._known) == 3
    lookup.rows(["A9", "A0"])
    assert world.asked[1:] == [["A0"]]


def test_a_database_that_comes_back_within_the_patience_is_waited_for():
    world = World(A1=(1,))
    world.down = world.now + 60
    assert world.lookup(max_outage=120.0).rows(["A1"]) == {"A1": (1,)}
    assert 60 <= world.now - 1000 < 66, "the longest pause is 5 s"
    assert len(world.asked) < 40


def test_a_database_that_stays_away_fails_in_one_line():
    world = World()
    world.down = float("inf")

    told = (
        r"^cannot look up accounts in postgresql://me@db/bank: no answer in 120 s \(connection refused\); "
        "start the query again when the database is back; nothing is lost$"
    )
    with pytest.raises(LookupFailed, match=told):
        world.lookup(max_outage=120.0).rows(["A1"])
    assert 100 < world.now - 1000 <= 120


def test_a_failed_question_leaves_nothing_in_the_cache():
    world = World(A1=(1,))
    lookup = world.lookup(max_outage=1.0)
    world.down = world.now + 30
    with pytest.raises(LookupFailed):
        lookup.rows(["A1"])
    world.now = world.down
    assert lookup.rows(["A1"]) == {"A1": (1,)}
