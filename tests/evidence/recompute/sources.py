"""Sources: their answers, their partitions, and what they no longer have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from tests.evidence.recompute.shared import (
    Formula,
    backlog,
    commit_wait_growth,
    commit_waits,
    file_wait,
    file_wait_growth,
    file_waits,
    offsets_read,
    plain,
)
from tests.evidence.tape import Batch, Json, Place, Tape, instant


def _place(finding: Json) -> Place:
    """The partition that a finding names: `topic/2`, or a name and a detail."""
    topic, _, number = str(finding["component"]["name"]).replace("-", "/").rpartition("/")
    return (topic, number) if topic else ("", str(finding["component"]["name"]))


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
        before = [b for b in tape.run if b.id < batch.id and offsets_read(b) > 0][-20:]
        usual = max((b.rows / offsets_read(b) for b in before), default=1.0) if len(before) >= 5 else 1.0
        return offsets_read(batch) - batch.rows / usual
    return _gaps(tape)


def _leaping(tape: Tape, told: Mapping[str, float]) -> Batch | None:
    same = [b for b in tape.run if b.rows == told["batch_rows"] and offsets_read(b) == told["batch_offsets"]]
    return same[-1] if same else None


def _of_leap(value: Callable[[Batch], float]) -> Formula:
    def formula(tape: Tape, finding: Json) -> float | None:
        batch = _leaping(tape, {each["name"]: each["value"] for each in finding["evidence"]})
        return value(batch) if batch is not None else None

    return formula


def _offsets_of_newest(tape: Tape, finding: Json) -> float | None:
    if finding["rule"] == "data-loss":
        return _of_leap(offsets_read)(tape, finding)
    return offsets_read(tape.all[-1])


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


def _of_commits(value: Callable[[Sequence[Json]], float]) -> Formula:
    """Of the newest 20 commits of the query that added files."""

    def formula(tape: Tape, finding: Json) -> float | None:
        commits = [each for sample in tape.tables for each in sample["commits"]][-20:]
        return value([each for each in commits if each["files"]])

    return formula


def _either(of_topic: Formula, of_table: Callable[[Tape, Json], float]) -> Formula:
    """Of the table that the finding names, by what its newest sample says of it, or of a topic's partition."""

    def formula(tape: Tape, finding: Json) -> float | None:
        read = tape.tables[-1]["sources"].get(str(finding["component"]["name"])) if tape.tables else None
        return of_topic(tape, finding) if read is None else of_table(tape, read)

    return formula


def _table_lost(tape: Tape, read: Json) -> float:
    name = next(name for name, each in tape.tables[-1]["sources"].items() if each is read)
    then = [sample for sample in tape.tables if sample["at"] <= tape.now - 60][-1]
    since = then["sources"][name]["since"]
    lag = max(0.0, then["at"] - since) if then["sources"][name]["versions"] else 0.0
    return (tape.now - read["since"] - lag) / (tape.now - then["at"])


def _uncheckpointed(tape: Tape) -> float | None:
    newest = tape.tables[-1]
    return float(newest["head"] + 1 if newest["checkpoint"] is None else newest["head"] - newest["checkpoint"])


HEADROOM = "ledgerops_retention_headroom_seconds"

FORMULAS: Mapping[str, Formula] = {
    "offsets_lost": _lost,
    "batch_rows": _of_leap(lambda batch: float(batch.rows)),
    "batch_offsets": _offsets_of_newest,
    "batch_files": plain(lambda tape: float(file_waits(tape)[-1][0])),
    "ledgerops_source_file_age_seconds": file_wait,
    "file_age_growth_seconds": file_wait_growth,
    "commit_wait_seconds": lambda tape, finding: commit_waits(tape, finding)[-1],
    "commit_wait_growth_seconds": commit_wait_growth,
    "files_per_commit": _of_commits(lambda commits: sum(each["files"] for each in commits) / len(commits)),
    "bytes_per_file": _of_commits(
        lambda commits: sum(each["bytes"] for each in commits) / sum(each["files"] for each in commits)
    ),
    "uncheckpointed_versions": plain(_uncheckpointed),
    "backlog_offsets": plain(lambda tape: float(backlog(tape.all[-1]))),
    "ledgerops_source_reachable": _unreachable,
    "seconds_without_answer": _unanswered,
    "seconds_without_arrival": _silent,
    "longest_pause_seconds": _longest_pause,
    HEADROOM: _either(_headroom, lambda tape, read: read["since"] - read["oldest_at"]),
    "headroom_share": _either(
        _headroom_share, lambda tape, read: (read["since"] - read["oldest_at"]) / (tape.now - read["oldest_at"])
    ),
    "headroom_lost_each_second": _either(_headroom_lost, _table_lost),
    "retention-risk: ledgerops_source_lag_seconds": _either(_lag_of, lambda tape, read: tape.now - read["since"]),
}
