"""Sources: their answers, their partitions, and what they no longer have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from statistics import median

from tests.evidence.recompute.shared import (
    Formula,
    backlog,
    file_wait,
    file_wait_growth,
    file_waits,
    plain,
    slots,
)
from tests.evidence.tape import Batch, Json, Place, Tape, instant, middle


def _latest(tape: Tape, finding: Json) -> list[Batch]:
    """The newest in a row that took a third longer than the interval, or a little if all do, three at most; where tasks
    count, only those that have them."""
    told = {each["name"] for each in finding["evidence"]}
    newest = tape.steady[-3:]
    if tape.interval:
        latest = [batch for batch in tape.steady if batch.end >= tape.now - 20]
        over = sum(batch.seconds > 1.05 * tape.interval for batch in latest)
        always = len(latest) >= 3 and latest[0].start <= tape.now - 20 and over >= 0.8 * len(latest)
        longest = max((batch.seconds for batch in latest), default=0.0)
        always = always and max(batch.seconds for batch in latest[-2:]) >= 0.8 * longest
        limit = (1.05 if always else 1.33) * tape.interval
        in_time = [place for place, batch in enumerate(newest) if batch.seconds <= limit]
        newest = newest[in_time[-1] + 1 :] if in_time else newest
    newest = newest or tape.without_first()[-3:]
    known = [batch for batch in newest if tape.stages(batch)]
    return known if "reading_wait_seconds_median" in told else newest


def _usual(tape: Tape) -> list[Batch]:
    """Those in time; where they are fewer than five, the half of the older ones that took the least time."""
    if len(tape.usual) >= 5:
        return tape.usual
    older = sorted((batch for batch in tape.steady[:-4] if batch.rows > 0), key=lambda batch: batch.seconds)
    return older[: (len(older) + 1) // 2]


def _source_phases(batch: Batch) -> float:
    return batch.phase("latestOffset") + batch.phase("getBatch")


def _reading_wait(tape: Tape, batch: Batch) -> float | None:
    reading = [stage for stage in tape.stages(batch) if not stage["reads_shuffle"] and stage["records"]]
    if not reading:
        return None
    stage = reading[0]
    python = tape.tasks[(batch.run, batch.id)].get("python_seconds") or 0.0
    at_work = (
        (stage["cpu_seconds"] + stage["gc_seconds"] + python) / stage["run_seconds"] if stage["run_seconds"] else 1
    )
    return float((stage["ended"] - stage["started"]) * max(0.0, 1 - at_work))


def _waits(tape: Tape, batches: Sequence[Batch]) -> float | None:
    return middle(wait for batch in batches if (wait := _reading_wait(tape, batch)) is not None)


def _source_share(tape: Tape, finding: Json) -> float | None:
    told = {each["name"] for each in finding["evidence"]}
    waits = "reading_wait_seconds_median" in told

    def share(batch: Batch) -> float:
        wait = _reading_wait(tape, batch) if waits else None
        return (_source_phases(batch) + (wait or 0.0)) / batch.seconds

    return middle(share(batch) for batch in _latest(tape, finding))


def _answers(tape: Tape) -> list[float]:
    return [data["seconds"] for _, data in tape.asked if data.get("seconds") is not None]


def _place(finding: Json) -> Place:
    """The partition that a finding names: `topic/2`, or a name and a detail."""
    topic, _, number = str(finding["component"]["name"]).replace("-", "/").rpartition("/")
    return (topic, number) if topic else ("", str(finding["component"]["name"]))


WINDOWS = (15.0, 60.0)  # seconds; anything else is the duration of one batch


def _window(finding: Json) -> float:
    return next((float(each["value"]) for each in finding["evidence"] if each["name"] == "window_seconds"), 60.0)


def _read_by(tape: Tape, finding: Json) -> Mapping[Place, float]:
    """By place what came in the minute, or in as much of it as the finding says."""
    minute = [batch for batch in tape.steady if batch.start >= tape.now - 60] or tape.steady[-3:]
    minute = [batch for batch in minute if batch.end >= tape.now - _window(finding)]
    alone = _window(finding) not in WINDOWS
    if alone:
        minute = tape.all[-1:]
    first, last = minute[0], minute[-1]
    if first.heads and last.heads and not alone:
        return {place: float(last.heads[place] - first.heads.get(place, 0)) for place in last.heads}
    found: dict[Place, float] = {}
    for batch in minute:
        for place, end in batch.ended_at_offsets.items():
            found[place] = found.get(place, 0.0) + end - batch.began_at_offsets.get(place, end)
    return found


def _partition_rows(tape: Tape, finding: Json) -> float | None:
    return _read_by(tape, finding).get(_place(finding))


def _partition_share(tape: Tape, finding: Json) -> float | None:
    topic, _ = place = _place(finding)
    read = {each: rows for each, rows in _read_by(tape, finding).items() if each[0] == topic}
    total = sum(read.values())
    return read[place] / total if place in read and total else None


def _partition_factor(tape: Tape, finding: Json) -> float | None:
    share = _partition_share(tape, finding)
    topic, _ = _place(finding)
    partitions = sum(each[0] == topic for each in _read_by(tape, finding))
    return share * slots(tape, partitions) if share is not None else None


def _partition_backlog(tape: Tape, finding: Json) -> float | None:
    newest, place = tape.all[-1], _place(finding)
    return float(newest.heads[place] - newest.ended_at_offsets[place]) if place in newest.heads else None


def _gaps(tape: Tape) -> float | None:
    """Offsets between where the query goes on and the oldest that is left."""
    if not tape.asked:
        return None
    earliest, ends = tape.asked[-1][1].get("earliest") or {}, tape.all[-1].ended_at_offsets
    return float(sum(max(0, earliest.get(topic, {}).get(number, 0) - end) for (topic, number), end in ends.items()))


def _lost(tape: Tape, finding: Json) -> float | None:
    told = {each["name"]: each["value"] for each in finding["evidence"]}
    if "batch_rows" in told:
        batch = _leaping(tape, told)
        if batch is None:
            return None
        before = [b for b in tape.run if b.id < batch.id and _offsets_read(b) > 0][-20:]
        usual = max((b.rows / _offsets_read(b) for b in before), default=1.0) if len(before) >= 5 else 1.0
        return _offsets_read(batch) - batch.rows / usual
    return _gaps(tape)


def _offsets_read(batch: Batch) -> float:
    return float(sum(end - batch.began_at_offsets.get(place, end) for place, end in batch.ended_at_offsets.items()))


def _leaping(tape: Tape, told: Mapping[str, float]) -> Batch | None:
    same = [b for b in tape.run if b.rows == told["batch_rows"] and _offsets_read(b) == told["batch_offsets"]]
    return same[-1] if same else None


def _of_leap(value: Callable[[Batch], float]) -> Formula:
    def formula(tape: Tape, finding: Json) -> float | None:
        batch = _leaping(tape, {each["name"]: each["value"] for each in finding["evidence"]})
        return value(batch) if batch is not None else None

    return formula


def _usual_phases(tape: Tape) -> float | None:
    return middle(_source_phases(batch) for batch in _usual(tape))


def _newest_median(tape: Tape, finding: Json) -> float | None:
    return middle(batch.seconds for batch in tape.steady[-5:])


def _offsets_of_newest(tape: Tape, finding: Json) -> float | None:
    if finding["rule"] == "data-loss":
        return _of_leap(_offsets_read)(tape, finding)
    return _offsets_read(tape.all[-1])


def _unanswered(tape: Tape, finding: Json) -> float | None:
    return tape.now - float(tape.asked[-1][1]["unreachable_since"])


def _unreachable(tape: Tape, finding: Json) -> float | None:
    return 0.0 if tape.asked and tape.asked[-1][1].get("error") else None


def _heads_seen(tape: Tape, finding: Json) -> list[tuple[float, Mapping[Place, int]]]:
    """(when, heads of the topic that the finding names), oldest first. A batch tells of them when it has ended: what
    was asked for meanwhile is newer, and the batch's own look then says nothing any more."""
    topic = str(finding["component"]["name"])
    told = [(batch.end, batch.start + batch.phase("latestOffset"), dict(batch.heads)) for batch in tape.all]
    for at, data in tape.asked:
        parts = (data.get("latest") or {}).get(topic, {})
        told.append((at, at, {(topic, number): head for number, head in parts.items()}))
    found: list[tuple[float, Mapping[Place, int]]] = []
    for _, at, heads in sorted(told, key=lambda each: each[0]):
        own = {place: head for place, head in heads.items() if place[0] == topic}
        if own and (not found or at > found[-1][0]):
            found.append((at, own))
    return found


def _grew(tape: Tape, finding: Json) -> list[float]:
    """The instants at which some partition of the topic was seen to have grown."""
    found: list[float] = []
    highest: dict[Place, int] = {}
    for at, heads in _heads_seen(tape, finding):
        if any(place in highest and head > highest[place] for place, head in heads.items()):
            found.append(at)
        for place, head in heads.items():
            highest[place] = max(head, highest.get(place, -1))
    return found


def _silent(tape: Tape, finding: Json) -> float | None:
    told = next(each["at"] for each in finding["evidence"] if each["name"] == "seconds_without_arrival")
    return instant(told) - _grew(tape, finding)[-1]


def _longest_pause(tape: Tape, finding: Json) -> float | None:
    return max((later - earlier for earlier, later in pairwise(_grew(tape, finding))), default=None)


def _lag_of(tape: Tape, finding: Json) -> float | None:
    """The lag of the partition that a finding names."""
    return tape.lag(_place(finding))


def _headroom(tape: Tape, finding: Json) -> float | None:
    if finding["rule"] == "data-loss":
        return 0.0 if (_gaps(tape) or 0) > 0 else None
    topic, number = place = _place(finding)
    asked = [(at, data) for at, data in tape.asked if not data.get("error")]
    lag, limits = tape.lag(place), []
    keeps = (asked[-1][1].get("retention_seconds") or {}).get(topic)
    if keeps is not None and lag is not None:
        limits.append(max(0.0, keeps - lag))
    rate = _forgets(asked, place)
    if rate:
        limits.append((tape.all[-1].ended_at_offsets[place] - asked[-1][1]["earliest"][topic][number]) / rate)
    told = next(each["value"] for each in finding["evidence"] if each["name"] == HEADROOM)
    return min(limits, key=lambda each: abs(each - told), default=None)


def _forgets(asked: Sequence[tuple[float, Json]], place: Place) -> float | None:
    """Offsets a second by which the oldest kept one advances."""
    seen = [(at, data["earliest"][place[0]][place[1]]) for at, data in asked if place[0] in data.get("earliest", {})]
    moved = [seen[0], *(b for a, b in pairwise(seen) if b[1] != a[1])] if seen else []
    if len(moved) < 2:
        return None
    (first, low), (last, high) = moved[0], moved[-1]
    return float((high - low) / (last - first))


def _headroom_share(tape: Tape, finding: Json) -> float | None:
    """Of what the topic keeps, by time or by how fast it forgets."""
    topic, number = place = _place(finding)
    asked = [(at, data) for at, data in tape.asked if not data.get("error")]
    newest, rate = asked[-1][1], _forgets(asked, place)
    keeps = [seconds for seconds in [(newest.get("retention_seconds") or {}).get(topic)] if seconds is not None]
    if rate:
        keeps.append((newest["latest"][topic][number] - newest["earliest"][topic][number]) / rate)
    left = _headroom(tape, finding)
    return left / min(keeps) if keeps and left is not None else None


def _headroom_lost(tape: Tape, finding: Json) -> float | None:
    """Seconds of lag that each second added since the newest batch of at least a minute ago."""
    place, newest = _place(finding), tape.all[-1]
    earlier = [batch for batch in tape.all if batch.start <= tape.now - 60][-1]
    if earlier.ended_at_offsets[place] == newest.ended_at_offsets[place]:
        return 1.0
    looked = earlier.start + earlier.phase("latestOffset")
    then, since = (_was_head(tape, place, batch.ended_at_offsets[place]) for batch in (earlier, newest))
    return (tape.now - since - max(0.0, looked - then)) / (tape.now - looked)


def _was_head(tape: Tape, place: Place, offset: int) -> float:
    """When an offset was last the head of its partition, between the heads that were seen."""
    topic, number = place
    seen = [(b.start + b.phase("latestOffset"), b.heads[place]) for b in tape.all if place in b.heads]
    seen += [
        (at, d["latest"][topic][number]) for at, d in tape.asked if number in (d.get("latest") or {}).get(topic, {})
    ]
    before = [point for point in sorted(seen) if point[1] <= offset]
    after = [point for point in sorted(seen) if point[1] > offset]
    (t0, h0), (t1, h1) = before[-1], after[0] if after else before[-1]
    return t0 + (t1 - t0) * (offset - h0) / (h1 - h0) if h1 > h0 else t0


HEADROOM = "ledgerops_retention_headroom_seconds"

FORMULAS: Mapping[str, Formula] = {
    "source_phases_seconds_median": lambda tape, finding: middle(map(_source_phases, _latest(tape, finding))),
    "usual_source_phases_seconds": plain(_usual_phases),
    "reading_wait_seconds_median": lambda tape, finding: _waits(tape, _latest(tape, finding)),
    "usual_reading_wait_seconds": plain(lambda tape: _waits(tape, _usual(tape))),
    "source_share": _source_share,
    "broker_answer_seconds": plain(lambda tape: middle(_answers(tape)[-3:])),
    "usual_broker_answer_seconds": plain(lambda tape: median(_answers(tape)[-60:-15])),
    "partition_rows": _partition_rows,
    "window_seconds": lambda tape, finding: _window(finding) if _window(finding) in WINDOWS else tape.all[-1].seconds,
    "partition_share": _partition_share,
    "slower_than_even": _partition_factor,
    "source-partition-skew: ledgerops_source_backlog_offsets": _partition_backlog,
    "offsets_lost": _lost,
    "batch_rows": _of_leap(lambda batch: float(batch.rows)),
    "batch_offsets": _offsets_of_newest,
    "rate-limited: batch_seconds_median": _newest_median,
    "batch_files": plain(lambda tape: float(file_waits(tape)[-1][0])),
    "ledgerops_source_file_age_seconds": file_wait,
    "file_age_growth_seconds": file_wait_growth,
    "backlog_offsets": plain(lambda tape: float(backlog(tape.all[-1]))),
    "ledgerops_source_reachable": _unreachable,
    "seconds_without_answer": _unanswered,
    "seconds_without_arrival": _silent,
    "longest_pause_seconds": _longest_pause,
    HEADROOM: _headroom,
    "headroom_share": _headroom_share,
    "headroom_lost_each_second": _headroom_lost,
    "retention-risk: ledgerops_source_lag_seconds": _lag_of,
}
