"""alerts/rules: Prometheus' recording and alerting rules, made of the catalogue of alerts, a file a group."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ledgerops.metrics.cause_texts import CAUSE_TEXTS
from ledgerops.mixin.alerts import CAUSES, FRESHNESS, OBSERVER, SYMPTOMS, crash_loop, falling_behind, freshness
from ledgerops.mixin.alerts.model import Alert
from ledgerops.mixin.alerts.promql import base_records, cause, lines, remembered, step
from ledgerops.mixin.problems import first_sentence
from ledgerops.mixin.site import Site, duration
from ledgerops.mixin.yaml_text import HEAD, document

MAX_RULES = 10  # in a group: its rules are evaluated one after another, groups side by side
FILES: Mapping[str, tuple[Alert, ...]] = {
    "symptoms": SYMPTOMS,
    "freshness": FRESHNESS,
    "observer": OBSERVER,
    "causes": CAUSES,
}
# the recording rules of a file, which come before its alerts
RECORDS: Mapping[str, tuple[Callable[[Site], list[tuple[str, str]]], ...]] = {
    "symptoms": (base_records, falling_behind.records, crash_loop.records),
    "freshness": (freshness.records,),
    "observer": (remembered,),
}
# files whose recording rules a file reads
READS: Mapping[str, tuple[str, ...]] = {"freshness": ("symptoms", "observer")}
# what pint reports of a file although it is meant, and why
MEANT: Mapping[str, Mapping[str, str]] = {
    "symptoms": {
        "promql/series": "findings, failures and what only Kafka has get a series once there is one",
        "promql/counter": "the question is whether a failure was ever counted",
    },
    "freshness": {"promql/range_query": "the budget is that of a whole period: keep the data for as long"},
    "observer": {
        "promql/counter": "the question is whether a series was ever left out",
        "alerts/comparison": "LedgerWatchdog fires always",
    },
    "causes": {"promql/series": "a cause has a series while it is one"},
}


def groups(name: str, site: Site) -> list[dict[str, Any]]:
    """The groups of one file; a PrometheusRule has those of all."""
    made = [*_recorded(RECORDS.get(name, ()), site), *(_rule(alert, site) for alert in FILES[name])]
    interval = duration(site.evaluation_seconds)
    found = [
        {
            "name": f"ledgerops-{name}" + (f"-{n // MAX_RULES + 1}" if n else ""),
            "interval": interval,
            "rules": made[n : n + MAX_RULES],
        }
        for n in range(0, len(made), MAX_RULES)
    ]
    if name == "freshness":
        seldom = duration(max(freshness.BUDGET_SECONDS * site.time_scale, site.evaluation_seconds))
        rules = _recorded((freshness.budget,), site)
        found.append({"name": "ledgerops-freshness-budget", "interval": seldom, "rules": rules})
    return found


def _recorded(makers: Iterable[Callable[[Site], list[tuple[str, str]]]], site: Site) -> list[dict[str, Any]]:
    return [{"record": name, "expr": lines(expression)} for make in makers for name, expression in make(site)]


def _rule(alert: Alert, site: Site) -> dict[str, Any]:
    rule: dict[str, Any] = {"alert": alert.name, "expr": lines(alert.expression(site))}
    if alert.hold:
        rule["for"] = site.window(alert.hold)
    if alert.keep:
        rule["keep_firing_for"] = site.window(alert.keep)
    rule["labels"] = {"severity": alert.severity, "problem": alert.problem}
    rule["annotations"] = texts(alert, site)
    return rule


def texts(alert: Alert, site: Site) -> Mapping[str, str]:
    """Every link is an annotation of its own, so that chat and alert pages make links of them."""
    app = "{{ with $labels.app }}&var-app={{ . | urlquery }}{{ end }}"  # an application of unknown name has none
    query = f"{app}&var-query={{{{ $labels.query | urlquery }}}}" if alert.of_query else ""
    return {
        "summary": alert.summary,
        "description": alert.description,
        "first_step": step(site, str(alert.rule), first_step(alert)) if alert.of_cause else first_step(alert),
        **({"rule": alert.rule} if alert.rule else {}),
        **({"root_cause": cause(site)} if alert.names_cause else {}),
        "runbook_url": f"{site.runbooks}/{alert.problem}.md",
        "dashboard_url": f"{site.grafana}/d/{alert.page}?var-job={site.job}{query}&from=now-1h&to=now",
    }


def first_step(alert: Alert) -> str:
    """What to do first where no cause is known: the rule's step, else how the runbook's mitigation begins."""
    return CAUSE_TEXTS[alert.rule].action if alert.rule else first_sentence(alert.runbook)


def rule_files(site: Site) -> Mapping[str, str]:
    """`<group>.yaml` -> text."""
    made = {}
    for name in FILES:
        notes = "".join(f"# {reason}:\n# pint file/disable {check}\n" for check, reason in MEANT[name].items())
        made[f"{name}.yaml"] = document({"groups": groups(name, site)}).replace(HEAD, HEAD + notes)
    return made
