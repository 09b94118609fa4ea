"""A comparison of two places, or of one before and after a moment: as a document (JSON) and as text."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from ledgerops.analysis.advice import advice, harms
from ledgerops.analysis.batch_samples import Samples, samples, split
from ledgerops.analysis.compare import Comparison, compare
from ledgerops.analysis.inputs import open_source
from ledgerops.analysis.session import DEFAULTS
from ledgerops.common import format
from ledgerops.common.format import clean
from ledgerops.config import Config
from ledgerops.diagnosis.report import Line, as_text
from ledgerops.errors import UserError, did_you_mean
from ledgerops.model.spark_progress import format_instant

VERSION = 1
STYLES = {"better": "healthy", "worse": "critical", "no effect": "", "cannot tell": "faint"}
ORDER = ("worse", "better", "cannot tell", "no effect")


def comparison(
    before: str, after: str, query: str | None = None, at: float | None = None, change_at: str | None = None,
    config: Config = DEFAULTS,
) -> dict[str, Any]:  # fmt: skip
    """The document (plain JSON types) of two places, or of one before and after the moment `at` (epoch seconds), which
    the caller put as `change_at`. Differences and bounds are in the unit of the measure, and hold with its
    `probability`; `advice` is that of `ledgerops.analysis.advice`. Raises UserError."""
    sides = _sides(before, after) if at is None else _before_and_after(before, at, change_at)
    known = sorted({*sides[0], *sides[1]})
    if not known:
        raise UserError(f"no query in {before} ran for long enough to compare")
    if query is not None and query not in known:
        every = f"there are {', '.join(known)}"
        raise UserError(f"no query {query!r} to compare; {did_you_mean(query, known, every)}")
    advised = advice(harms(before, at, config), harms(after, config=config), sides)
    return document(compare(*sides, query), before, after, change_at, advised)


def document(
    found: Iterable[Comparison], before: str, after: str, change_at: str | None,
    advised: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:  # fmt: skip
    """Differences and bounds are in the unit of the measure; `advised` has, by query, what was advised before."""
    return {
        "version": VERSION, "before": before, "after": after, "change_at": change_at,
        "queries": [
            {
                "query": each.query, "verdict": each.verdict, "because": each.because,
                "advice": advised.get(each.query), "before": asdict(each.before), "after": asdict(each.after),
                "measures": [asdict(one) for one in each.measures], "phases": [asdict(one) for one in each.phases],
            }
            for each in found
        ],
    }  # fmt: skip


def _sides(before: str, after: str) -> tuple[Samples, Samples]:
    sides = samples(open_source(before).observations), samples(open_source(after).observations)
    if any(sides) and not sides[0].keys() & sides[1].keys():
        of = (
            f"{', '.join(sorted(side)) or 'none'} in {name}" for side, name in zip(sides, (before, after), strict=True)
        )
        raise UserError(f"no query ran long enough on both sides: {' and '.join(of)}")
    return sides


def _before_and_after(place: str, at: float, change_at: str | None) -> tuple[Samples, Samples]:
    found = samples(open_source(place).observations)
    first = min((each[0].started for each in found.values()), default=at)
    last = max((each[-1].ended for each in found.values()), default=at)
    if found and not first < at < last:
        raise UserError(
            f"change at {change_at}: not between the first batch ({format_instant(first)}) "
            f"and the last ({format_instant(last)}) of {place}"
        )
    return split(found, at)


def text(found: Mapping[str, Any], colour: bool = False) -> str:
    """One block a query: the verdict, the load, a line a measure; what is worse comes first."""
    queries = sorted(found["queries"], key=lambda query: (ORDER.index(query["verdict"]), query["query"]))
    lines: list[Line] = []
    for query in queries:
        lines += [*_block(query), []]
    counts = [f"{count} {name}" for name in ORDER if (count := sum(each["verdict"] == name for each in queries))]
    lines.append([(f"{format.counted(len(queries), 'query', 'queries')}: {', '.join(counts)}", "strong")])
    return as_text(lines, colour)


def _block(query: Mapping[str, Any]) -> list[Line]:
    verdict, because = query["verdict"], query["because"]
    why = f" ({because})" if because else ""
    before, after = query["before"], query["after"]
    head: Line = [(f"{clean(query['query']):<24} ", "strong"), (f"{verdict}{why}", STYLES[verdict])]
    load = (
        f"{_from_to(before, after, 'rows_per_second', ' rows/s')}, {_from_to(before, after, 'rows', ' rows a batch')}, "
        f"{before['batches']} and {after['batches']} batches"
    )
    processed = _from_to(before, after, "processed_per_second", " rows/s of batch time")
    lines = [head, *_advice(query["advice"])]
    lines += [_fact("load", load, "faint"), _fact("processing rate", processed, "faint")]
    for measure in query["measures"]:
        lines.append(_row(measure, "  "))
        if measure["name"] == "batch duration":
            lines += [_row(phase, "    ") for phase in query["phases"] if phase["verdict"] in ("better", "worse")]
    return lines


def _advice(advice: Mapping[str, Any] | None) -> list[Line]:
    """What was wrong and advised before the change, and whether the harm has ended."""
    if advice is None:
        return []
    before, after, promised = advice["before_seconds"], advice["after_seconds"], advice["promised_seconds"]
    known = before is not None and after is not None and after < before  # a cap's harm is no long batch
    batch = f": batch {format.duration(before)} -> {format.duration(after)}" if known else ""
    saving = f", promised {format.duration(promised)} less" if known and promised is not None else ""
    ended, others = advice["ended"], [each for each in advice["still"] if each != advice["rule"]]
    now = f"; now {', '.join(others)}" if others else ""
    became, style = ("ended", STYLES["better"]) if ended else ("not ended", STYLES["worse"])
    return [
        _fact("harm before", advice["rule"]),
        _fact("advised", clean(advice["action"])),
        _fact("harm after", f"{became}{batch}{saving}{now}", style),
    ]


def _fact(name: str, text: str, style: str = "") -> Line:
    return [(f"  {name:<18} {text}", style)]


def _from_to(before: Mapping[str, Any], after: Mapping[str, Any], name: str, unit: str) -> str:
    return f"{format.count(before[name])} to {format.count(after[name])}{unit}"


def _row(measure: Mapping[str, Any], margin: str) -> Line:
    name = f"{margin}{measure['name'].replace('_', ' '):<{20 - len(margin)}} "
    verdict = measure["verdict"]
    if measure["before"] is None:
        return [(name, ""), (f"{verdict}: {measure['because']}", STYLES[verdict])]
    show = format.size if measure["unit"] == "bytes" else format.duration
    share = f" ({measure['difference'] / measure['before']:+.0%})" if measure["before"] > 0 else ""
    between = ""
    if measure["low"] is not None and measure["high"] is not None:
        between = f", between {_signed(measure['low'], show)} and {_signed(measure['high'], show)}"
    change = f"{show(measure['before'])} to {show(measure['after'])}{share}{between}"
    because = f" ({measure['because']})" if measure["because"] else ""
    return [(name, ""), (f"{change}: ", ""), (f"{verdict}{because}", STYLES[verdict])]


def _signed(value: float, show: Any) -> str:
    return f"{'-' if value < 0 else '+'}{show(abs(value))}"
