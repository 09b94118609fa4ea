"""Targets in memory, for what is about the sender and not about Kafka."""

import json
import time

from ledgerops.ledger.plan.poison import REASONS


def read_samples(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


class Memory:
    """Takes everything: `cost` seconds a call, `room` records at a time."""

    kinds = REASONS
    waiting = 0

    def __init__(self, cost=0.0, room=None, acknowledges=True):
        self.cost, self.room, self.acknowledges = cost, room, acknowledges
        self.got = []  # partition, key, value
        self.acknowledged, self.refused, self.problem = 0, 0, None

    def send(self, records, start, end):
        if self.cost:
            time.sleep(self.cost)
        upto = end if self.room is None else min(end, start + self.room)
        self.got += zip(
            records.partitions[start:upto], records.keys[start:upto], records.values[start:upto], strict=True
        )
        for sample in records.samples:
            if start <= sample.place < upto:
                sample.created = time.time()
                sample.sampler.keep(sample, sample.created + 0.5, sample.created + 0.25)
        if self.acknowledges:
            self.acknowledged = len(self.got)
        return upto

    def serve(self):
        pass

    def close(self):
        pass

    def by_partition(self):
        found = {}
        for partition, key, value in self.got:
            found.setdefault(partition, []).append((key, value))
        return found
