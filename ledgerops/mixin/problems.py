"""docs/problems: one page for each problem, whatever tells of it: a rule of the diagnosis, an alert, or both."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ledgerops.diagnosis import do_first
from ledgerops.diagnosis.rule import Rule
from ledgerops.diagnosis.rules import BY_SLUG
from ledgerops.diagnosis.runbook import SECTIONS, evidence_of, on_call
from ledgerops.metrics.cause_texts import FAMILIES
from ledgerops.mixin.alerts import ALERTS, FRESHNESS, SYMPTOMS
from ledgerops.mixin.alerts.model import Alert
from ledgerops.mixin.alerts.promql import lines
from ledgerops.mixin.reference import HEAD
from ledgerops.mixin.site import Site, duration
from ledgerops.model.finding import SEVERITIES, Severity

INDEX = """# Problems

One page for each problem: what it means, what to do first, what to check, and how to end it. The rule of a problem is
what `ledgerops diagnose` names, and `ledgerops rules SLUG` prints its page; the alert is what Prometheus fires.

- Severity says what to do: critical = act now, warning = act today, info = know it.
- A cause has the severity of the worst problem that it explains. A slow sink is a warning; once results are older than
  the objective because of it, it is critical.
- The alert of a cause is info and pages nobody: it is listed beside the alert of its symptom, which names the cause.
  Without a symptom it is as severe as the problem.
- `QUERY` and `APP` stand for the labels `query` and `app` of the query: a message begins with "CRITICAL QUERY of APP".
  `INSTANCE` is the address of the driver, the label `instance` of `ledgerops_query_info{app="APP",query="QUERY"}`.
- Commands need `pip install 'ledgerops[cli]'`, and `LEDGEROPS_BEARER_TOKEN_FILE` where drivers ask for a token.
"""
CASES = "First steps, by what is found"
FAMILY_OF = {slug: family for family, entries in FAMILIES.items() for slug in entries}


@dataclass(frozen=True, slots=True)
class Problem:
    """What a page is about: an alert, and the rule that sees the same, where there is one."""

    alert: Alert
    rule: Rule | None

    @property
    def slug(self) -> str:
        """The name of its page."""
        return self.alert.problem

    @property
    def runbook(self) -> str:
        """The docstring with the text of its page."""
        return self.rule.runbook if self.rule else self.alert.runbook

    @property
    def title(self) -> str:
        """What a person sees: `Slow sink`."""
        return self.runbook.strip().partition(":")[0]

    @property
    def says(self) -> str:
        """The rest of the first line, as a sentence: `A batch spends most of its time writing, not computing.`"""
        return _capital(self.runbook.strip().splitlines()[0].partition(": ")[2])

    @property
    def first(self) -> str:
        """The first safe step, as Markdown: one sentence, or a list by the kind of query."""
        if self.rule is None:
            return f" {first_sentence(self.runbook)}"
        step = do_first.section(self.rule.slug).partition("\n\n")[0].rstrip()
        return f"\n\n{step}" if step.startswith("- ") else f" {step}"

    @property
    def cases(self) -> str:
        """The first steps by what is found, folded, where there are too many to begin with; else empty."""
        cases = do_first.section(self.rule.slug).partition("\n\n")[2] if self.rule else ""
        return _folded(CASES, cases) if cases else ""

    @property
    def severity(self) -> Severity:
        """That of the rule, or of an alert that no rule sees."""
        return self.rule.severity if self.rule else self.alert.severity

    @property
    def family(self) -> str:
        """Below which heading it is listed."""
        symptom = self.alert in (*SYMPTOMS, *FRESHNESS)
        return FAMILY_OF.get(self.slug, "Symptoms" if symptom else "Observer and alerting")


PROBLEMS = tuple(Problem(alert, BY_SLUG.get(alert.rule or "")) for alert in ALERTS)
TITLES = {problem.slug: problem.title for problem in PROBLEMS}


def problem_pages() -> Mapping[str, str]:
    """`<slug>.md` -> text, and their index by family, the most severe first."""
    pages = {f"{problem.slug}.md": _page(problem) for problem in PROBLEMS}
    parts = [HEAD, INDEX]
    for family in FAMILIES:
        parts.append(f"\n## {family}\n\n| problem | severity | alert |\n|---|---|---|\n")
        listed = [problem for problem in PROBLEMS if problem.family == family]
        parts += map(_row, sorted(listed, key=lambda problem: -SEVERITIES.index(problem.severity)))
    return {**pages, "README.md": "".join(parts)}


def _row(problem: Problem) -> str:
    name = f"[{problem.title}]({problem.slug}.md)"
    return f"| {name}: {_small(problem.says)} | {problem.severity} | `{problem.alert.name}` |\n"


def _page(problem: Problem) -> str:
    body = runbook_body(problem.runbook, problem.slug)
    return (
        f"{HEAD}# {problem.title}\n\n{problem.says}\n\n**Do first:**{problem.first}\n\n{_facts(problem)}\n{body}\n"
        f"{problem.cases}{_alert(problem.alert)}{evidence_list(problem.runbook)}"
    )


def _facts(problem: Problem) -> str:
    """Severity and names, in one paragraph: the first step may be a list."""
    rule, alert = problem.rule, problem.alert
    explained = ", ".join(f"[{TITLES[slug]}]({slug}.md)" for slug in rule.explains) if rule else ""
    rises = explained and problem.severity != "critical"
    severity = f"**{problem.severity}**" + (", or that of the worst problem that it explains" if rises else "")
    facts = [f"Severity: {severity}"]
    if rule:
        facts.append(f"Rule: `{rule.slug}`" + (f", explains {explained}" if explained else ""))
        facts.append("What it finds now: `ledgerops diagnose http://INSTANCE --query QUERY`")
    beside = ", listed beside the alert of its symptom" if rule and rule.explains and alert.severity == "info" else ""
    facts.append(f"Alert: `{alert.name}`, {alert.severity}{beside}")
    facts.append("[What the names in capitals stand for](README.md)")
    return " · ".join(facts) + "\n"


def _alert(alert: Alert) -> str:
    site = Site()
    held = f" for {duration(alert.hold)}" if alert.hold else ""
    return _folded(
        f"The alert {alert.name}",
        f"{alert.summary} It fires while this holds{held}:\n\n```promql\n{lines(alert.expression(site))}\n```\n",
    )


def evidence_list(runbook: str) -> str:
    """How each number of a finding is computed, folded; empty without formulas."""
    items = "".join(f"- `{name}`: {formula}\n" for name, formula in evidence_of(runbook).items())
    return _folded("Evidence: how each number of a finding is computed", items) if items else ""


def _folded(summary: str, text: str) -> str:
    """HTML that a code host and the site fold; the attribute is the site's."""
    return f'\n<details markdown="1">\n<summary>{summary}</summary>\n\n{text}\n</details>\n'


def runbook_body(runbook: str, slug: str = "") -> str:
    """What someone on call reads: the four sections of a docstring as headings and paragraphs, without formulas.

    A rule that the text names is a link to its page, but on its own page (`slug`).
    """
    body = on_call(runbook).strip().split("\n", 1)[1]
    for section in SECTIONS:
        body = re.sub(
            rf"^{section}: *(\S)",
            lambda start, title=section: f"\n## {title}\n\n{start[1].upper()}",  # type: ignore[misc]
            body,
            flags=re.MULTILINE,
        )
    body = re.sub(r"^ {4}(?! )", "", body, flags=re.MULTILINE)
    body = re.sub(r"`([a-z-]+)`", lambda name: _linked(name[1], slug), body)
    return re.sub(r"\n{3,}", "\n\n", body).strip()


def _linked(name: str, slug: str) -> str:
    return f"[`{name}`]({name}.md)" if name in BY_SLUG and name != slug else f"`{name}`"


def first_sentence(runbook: str) -> str:
    """The first sentence of the section Mitigation."""
    found = re.search(r"^Mitigation: *(.+?\.)(?:\s|$)", runbook, re.MULTILINE | re.DOTALL)
    return _capital(" ".join(found[1].split())) if found else ""


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _small(sentence: str) -> str:
    """Within a sentence: no capital, but of names, and no stop."""
    name = re.match(r"[A-Z]\w*[A-Z]|Python|Spark", sentence)
    return (sentence if name else sentence[:1].lower() + sentence[1:]).rstrip(".")
