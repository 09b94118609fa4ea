"""The status of a query and the severity of a finding as numbers, for panels that colour and sort them."""

from ledgerops.mixin.alerts import promql
from ledgerops.mixin.dashboards.model import EACH, ONE, by, q
from ledgerops.mixin.site import duration

# status -> its colour, and what a verdict says where nothing was found; the worse, the later: tables sort by the number
STATUSES = {
    "healthy": ("good", "Healthy: nothing was found."),
    "idle": ("cold", "Idle: there are no new rows to read."),
    "stopped": ("cold", "Stopped on purpose."),
    "starting": ("cold", "Starting: too few batches to judge."),
    "catching_up": ("warn", "Catching up: the backlog is shrinking."),
    "at_risk": ("warn", "Running, with a finding that needs attention."),
    "pressured": ("warn", "Close to its limit."),
    "falling_behind": ("bad", "Falling behind; no cause has been found yet."),
    "stuck": ("bad", "Stuck; no cause has been found yet."),
    "failed": ("bad", "Failed; see the driver log."),
    "lost": ("bad", "Lost: it stopped reporting without having ended."),
}
# what a page knows and no driver says: healthy, but with a finding that needs attention
DERIVED = ("at_risk",)
NUMBERS = {name: number for number, name in enumerate(STATUSES)}
NAMES = tuple((str(n), f"{STATUSES[name][0]}:{name.replace('_', ' ')}") for name, n in NUMBERS.items())
REMEMBERED = duration(promql.REMEMBERED_SECONDS)  # for so long a driver that stopped answering is shown
# how far back every scrape is read; before that one sample every five minutes, which the rules record
READ_WHOLE = "1h"


def last(metric: str, recorded: str) -> str:
    """The last value of each series of a query's metric, also of those that no driver has any more."""
    return f"(last_over_time({q(metric)}[{READ_WHOLE}]) or last_over_time({q(recorded)}[{REMEMBERED}]))"


ACTIVE = q(promql.ACTIVE)
RUNS_ELSEWHERE = f"({ACTIVE} == 0 and on ({ONE}) {ACTIVE} == 1)"
# as the rules say it; of a Prometheus without them, what ran within the hour, and nothing has taken over
LOST = (
    f"({q(promql.LOST)} or (last_over_time({ACTIVE}[{READ_WHOLE}]) > 0) ^ 0 unless on ({ONE}) {ACTIVE} "
    f"unless on () {q(promql.KNOWN)})"
)


def present(expression: str) -> str:
    """Without what a driver goes on to say of a query that ended there and runs on another."""
    return f"{expression} unless on ({EACH}) {RUNS_ELSEWHERE}"


def status() -> str:
    """The number of the status of each query, also of those that no driver answers for any more."""
    parts = [
        f"{NUMBERS['at_risk']} * (({_is('healthy')} == 1) and on ({EACH}) "
        + q("ledgerops_finding", 'severity!="info"')
        + ")"
    ]
    parts += [f"({_is(name)} == 1) * {number}" for name, number in NUMBERS.items() if name not in DERIVED]
    said = " or ignoring (status) ".join(parts)
    return f"{present(f'({said})')} or on ({EACH}) {LOST} * {NUMBERS['lost']}"


def _is(name: str) -> str:
    matcher = f'status="{name}"'
    return q("ledgerops_query_status", matcher)


def rows() -> str:
    """1 for each query that a table lists: those that a driver answers for, and those that were lost."""
    return by("max", EACH, f"{present(f'{ACTIVE} >= bool 0')} or {LOST}")


SEVERITIES = (("info", "cold"), ("warning", "warn"), ("critical", "bad"))
FOUND = tuple((str(n), f"{colour}:{name}") for n, (name, colour) in enumerate(SEVERITIES, 1))
# Grafana shows the text for no data neither in a state timeline nor in a table of several targets: a row says it
FOUND_OR_NONE = (("0", "good:none"), *FOUND)


def or_none(expression: str, known: str, label: str, text: str, value: int = 0) -> str:
    """The series, or else the value with the text as its label, where `known` says that there could be some."""
    return f'{expression} or on () label_replace({value} + 0 * count({known}), "{label}", "{text}", "", "")'


def never_empty(expression: str, seen: str, label: str, text: str) -> str:
    """The series, or, if the page's time has no sample of `seen`, a 0 with the text as its label.

    Grafana's heatmap shows a TypeError without a series, and it subtracts buckets by position: none may begin earlier.
    """
    nothing = f"vector(0) unless on () last_over_time({seen}[$__range] @ end())"
    return f'{expression} or on () label_replace({nothing}, "{label}", "{text}", "", "")'


def severity(selector: str, least: int = 1) -> str:
    """The number of each series' severity, from `least` on; in the selector `[severity]` stands for the matcher."""
    parts = []
    for number, (name, _) in enumerate(SEVERITIES[least - 1 :], least):
        matcher = f'severity="{name}"'
        parts.append(f"{number} * ({selector.replace('[severity]', matcher)})")
    return " or ".join(parts)


def found(labels: str) -> str:
    """What the rules find, each finding as the number of its severity."""
    return by("max", labels, severity(present(q("ledgerops_finding", "[severity]"))))
