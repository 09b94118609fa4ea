"""Several senders of one load: they begin together, end at one record, and whoever is lost is not passed over."""

from dataclasses import asdict
from pathlib import Path

import pytest

from ledgerops.errors import UserError
from ledgerops.load.generator.accounting import SentCounts
from ledgerops.load.generator.coordinator import Coordinator
from ledgerops.load.generator.local_senders import conduct
from ledgerops.load.generator.request import LoadRequest
from ledgerops.load.generator.sender import ShareSender

PLAN = """
seed: 5
start: 2026-01-01T00:00:00Z
phases: [{shape: constant, rate: 1000}]
poison: {share: 0.02}
"""


class Team:
    """Coordinator and members in one process, on a clock that moves only when they rest."""

    def __init__(self, folder, count=3, **order):
        self.now = 50.0
        self.lines = []  # what is on its way to the conductor
        self.said = []
        order = LoadRequest(**{"plan": "mine.yaml", "text": PLAN, "to": str(folder), **order})
        self.members = {number: ShareSender(self._line(number), lambda: self.now) for number in range(count)}
        self.conductor = Coordinator(order, list(self.members), self._send, self.said.append)
        self.conductor.start()

    def _line(self, number):
        return lambda kind, data: self.lines.append((number, kind, data))

    def _send(self, number, kind, data):
        self.members[number].heard(kind, data)

    def turn(self):
        for member in self.members.values():
            if member.ordered:
                member.connect()
        rests = [member.step() for member in self.members.values() if not member.over]
        self.now += min(rests, default=0.0)
        while self.lines:
            self.conductor.heard(*self.lines.pop(0))

    def run(self):
        while not self.conductor.over:
            self.turn()
        return self.conductor.result()


def test_all_of_the_records_are_sent_once(tmp_path):
    sent = Team(tmp_path, records=500, at_once=True).run()

    assert (sent.records, sent.summary.all.rows, sent.problem) == (500, 500, None)
    assert sent.produced == sent.acknowledged == 500 + sum(sent.poison.values())


def test_a_stop_ends_all_at_one_record(tmp_path):
    team = Team(tmp_path, at_once=True)
    while len(team.conductor.books) < 3:
        team.turn()
        team.now += 0.1
    for number, member in team.members.items():  # one is further than the others
        for _ in range(6 * number):
            member.step()
    team.conductor.stop()
    sent = team.run()

    assert sent.problem is None
    assert sent.records == sent.summary.all.rows > 2_000


def test_a_stop_before_the_beginning_sends_nothing(tmp_path):
    team = Team(tmp_path)
    team.conductor.stop()

    assert team.conductor.over
    assert not team.conductor.begun


def test_a_member_that_is_lost_makes_the_books_unknown(tmp_path):
    team = Team(tmp_path, records=500, at_once=True)
    while not team.conductor.begun:
        team.turn()
    del team.members[1]
    team.conductor.lost(1)
    sent = team.run()

    assert sent.problem == "1 of 3 senders stopped without a report, so it is not known what they sent"


def test_a_member_that_is_lost_does_not_keep_the_others_from_stopping(tmp_path):
    team = Team(tmp_path, at_once=True)
    while len(team.conductor.books) < 3:
        team.turn()
        team.now += 0.1
    del team.members[1]
    team.conductor._send = lambda number, kind, data: number == 1 or team._send(number, kind, data)
    team.conductor.stop()
    team.conductor.lost(1)

    assert team.run().problem is not None


def test_a_member_that_is_lost_before_the_beginning_ends_the_load(tmp_path):
    team = Team(tmp_path)
    team.conductor.lost(1)

    assert team.conductor.over
    assert team.conductor.failure == "a sender stopped before it could start"


def test_a_member_that_is_done_while_it_is_asked_to_pause_keeps_nobody_waiting():
    """The other one told how far it is before that word came."""
    told = []
    conductor = Coordinator(LoadRequest(plan="mine.yaml", text=PLAN), [0, 1], lambda *message: told.append(message))
    conductor.begun = True
    conductor.stop()
    conductor.heard(1, "position", 3)
    conductor.heard(0, "done", {"sent": SentCounts(records=7).document(), "legs": {}})
    conductor.lost(0)

    assert told[-1] == (1, "limit", 7)


@pytest.mark.parametrize("place", ["nowhere", "full"])
def test_a_place_of_samples_that_takes_nothing_is_told_in_one_line(tmp_path, place):
    samples = {"nowhere": tmp_path / "file" / "s.jsonl", "full": Path("/dev/full")}[place]
    (tmp_path / "file").touch()
    member = ShareSender(lambda kind, data: said.append((kind, data)))
    said = []
    order = LoadRequest(
        plan="mine.yaml", text=PLAN, to=str(tmp_path / "to"), records=50, at_once=True, samples=str(samples)
    )
    member.heard("order", {"order": asdict(order), "share": [0, 1]})
    member.connect()
    member.heard("begin", {"origin": 0.0})
    while not member.over:
        member.step()

    [failed] = [data for kind, data in said if kind == "failed"]
    assert failed.startswith(f"cannot write {samples}: ")


def test_members_that_cannot_begin_are_told_in_one_line(tmp_path):
    (tmp_path / "file").touch()
    order = LoadRequest(plan="mine.yaml", text=PLAN, to=str(tmp_path / "file"), records=10)

    with pytest.raises(UserError, match=f"^cannot write to {tmp_path}/file/transactions: not a directory$"):
        conduct(order, 2, lambda: False)


def test_what_a_member_says_is_passed_on_once(tmp_path):
    team = Team(tmp_path, records=10)
    team.conductor.heard(0, "said", "the broker is back")
    team.conductor.heard("a stranger", "said", "hello")

    assert team.said == ["the broker is back"]
