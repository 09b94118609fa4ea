"""Several senders of one load: they begin together, end at one record, and whoever is lost is not passed over."""

from dataclasses import asdict

import pytest

from ledgerops.errors import UserError
from ledgerops.load.generator.accounting import SentCounts
from ledgerops.load.generator.coordinator import Coordinator
from ledgerops.load.generator.local_senders import run_senders
from ledgerops.load.generator.request import LoadRequest
from ledgerops.load.generator.sender import ShareSender

PLAN = """
seed: 5
start: 2026-01-01T00:00:00Z
phases: [{shape: constant, rate: 1000}]
poison: {share: 0.02}
"""


class Team:
    """Coordinator and senders in one process, on a clock that moves only when they rest."""

    def __init__(self, folder, count=3, **request):
        self.now = 50.0
        self.lines = []  # what is on its way to the coordinator
        self.said = []
        request = LoadRequest(**{"plan": "mine.yaml", "text": PLAN, "to": str(folder), **request})
        self.senders = {number: ShareSender(self._line(number), lambda: self.now) for number in range(count)}
        self.coordinator = Coordinator(request, list(self.senders), self._send, self.said.append)
        self.coordinator.start()

    def _line(self, number):
        return lambda kind, data: self.lines.append((number, kind, data))

    def _send(self, number, kind, data):
        self.senders[number].receive(kind, data)

    def turn(self):
        for sender in self.senders.values():
            if sender.must_connect:
                sender.connect()
        rests = [sender.step() for sender in self.senders.values() if not sender.over]
        self.now += min(rests, default=0.0)
        while self.lines:
            self.coordinator.receive(*self.lines.pop(0))

    def run(self):
        while not self.coordinator.over:
            self.turn()
        return self.coordinator.result()

    def until_all_count(self):
        while len(self.coordinator.counts) < 3:
            self.turn()
            self.now += 0.1


def test_all_of_the_records_are_sent_once(tmp_path):
    sent = Team(tmp_path, records=500, at_once=True).run()
    assert (sent.records, sent.summary.all.rows, sent.problem) == (500, 500, None)
    assert sent.produced == sent.acknowledged == 500 + sum(sent.poison.values())


def test_a_stop_ends_all_at_one_record(tmp_path):
    team = Team(tmp_path, at_once=True)
    team.until_all_count()
    for number, sender in team.senders.items():  # one is further than the others
        for _ in range(6 * number):
            sender.step()
    team.coordinator.stop()
    sent = team.run()

    assert sent.problem is None
    assert sent.records == sent.summary.all.rows > 2_000


def test_a_stop_before_the_beginning_sends_nothing(tmp_path):
    coordinator = Team(tmp_path).coordinator
    coordinator.stop()
    assert (coordinator.over, coordinator.begun) == (True, False)


def test_a_sender_that_is_lost_makes_the_counts_unknown(tmp_path):
    team = Team(tmp_path, records=500, at_once=True)
    while not team.coordinator.begun:
        team.turn()
    del team.senders[1]
    team.coordinator.lost(1)
    sent = team.run()

    assert sent.problem == "1 of 3 senders stopped without a report, so it is not known what they sent"


def test_a_sender_that_is_lost_ends_a_load_without_end_and_is_told_once(tmp_path):
    team = Team(tmp_path)
    team.until_all_count()
    del team.senders[1]
    team.coordinator._send = lambda number, kind, data: number == 1 or team._send(number, kind, data)
    for _ in range(3):  # locust looks again and again
        team.coordinator.lost(1)
    for _ in range(100):
        team.turn()

    assert team.coordinator.over
    assert team.coordinator.result().problem.startswith("1 of 3 senders stopped without a report")
    assert team.said == ["a sender was lost; the load ends"]


def test_a_sender_that_goes_when_it_is_done_is_not_lost(tmp_path):
    team = Team(tmp_path, records=100, at_once=True)
    team.run()
    team.coordinator.lost(1)
    assert (team.said, team.coordinator.result().problem) == ([], None)


def test_a_sender_that_is_lost_does_not_keep_the_others_from_stopping(tmp_path):
    team = Team(tmp_path, at_once=True)
    team.until_all_count()
    del team.senders[1]
    team.coordinator._send = lambda number, kind, data: number == 1 or team._send(number, kind, data)
    team.coordinator.stop()
    team.coordinator.lost(1)

    assert team.run().problem is not None


def test_a_sender_that_is_lost_before_the_beginning_ends_the_load(tmp_path):
    coordinator = Team(tmp_path).coordinator
    coordinator.lost(1)
    assert (coordinator.over, coordinator.failure) == (True, "a sender stopped before it could start")


def test_a_sender_that_is_done_while_it_is_asked_to_pause_keeps_nobody_waiting():
    """The other one told how far it is before that word came."""
    told = []
    coordinator = Coordinator(LoadRequest(plan="mine.yaml", text=PLAN), [0, 1], lambda *message: told.append(message))
    coordinator.begun = True
    coordinator.stop()
    coordinator.receive(1, "position", 3)
    coordinator.receive(0, "done", {"sent": SentCounts(records=7).document(), "legs": {}})
    coordinator.lost(0)

    assert told[-1] == (1, "limit", 7)


@pytest.mark.parametrize("samples", ["/dev/null/s.jsonl", "/dev/full"])
def test_a_place_of_samples_that_takes_nothing_is_told_in_one_line(tmp_path, samples):
    said = []
    sender = ShareSender(lambda kind, data: said.append((kind, data)))
    options = {"records": 50, "at_once": True, "samples": samples}
    request = LoadRequest(plan="mine.yaml", text=PLAN, to=str(tmp_path / "to"), **options)
    sender.receive("request", {"request": asdict(request), "share": [0, 1]})
    sender.connect()
    sender.receive("begin", {"origin": 0.0})
    while not sender.over:
        sender.step()

    [failed] = [data for kind, data in said if kind == "failed"]
    assert failed.startswith(f"cannot write {samples}: ")


def test_senders_that_cannot_begin_are_told_in_one_line(tmp_path):
    (tmp_path / "file").touch()
    request = LoadRequest(plan="mine.yaml", text=PLAN, to=str(tmp_path / "file"), records=10)
    with pytest.raises(UserError, match=f"^cannot write to {tmp_path}/file/transactions: not a directory$"):
        run_senders(request, 2, lambda: False)


def test_what_a_sender_says_is_passed_on_once(tmp_path):
    team = Team(tmp_path, records=10)
    team.coordinator.receive(0, "message", "the broker is back")
    team.coordinator.receive("a stranger", "message", "hello")
    assert team.said == ["the broker is back"]
