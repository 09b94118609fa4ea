"""A runbook, as the docstring of a rule or an alert holds it: four sections for someone on call, then formulas."""

import re
from collections.abc import Mapping

PAGES = "https://github.com/ledgerops/ledgerops/blob/main/docs/problems"  # one a problem, `<slug>.md`
SECTIONS = ("Meaning", "Impact", "Diagnosis", "Mitigation")
EVIDENCE = re.compile(r"^Evidence:[ \t]*\n((?:[ \t]+\S.*\n?|[ \t]*\n)*)", re.MULTILINE)
EVIDENCE_ENTRY = re.compile(r"^ {4}`?(?P<name>[A-Za-z_<{][\w<>{}]*)`?\s*[:=]\s*(?P<formula>.*)$")


def on_call(runbook: str) -> str:
    """What someone on call reads: the runbook without its section of formulas."""
    return EVIDENCE.sub("", runbook)


def with_evidence(runbook: str, formulas: Mapping[str, str]) -> str:
    """The runbook with a section of formulas, by the name of the evidence."""
    lines = "".join(f"    {name}: {formula}\n" for name, formula in formulas.items())
    return f"{runbook.rstrip()}\nEvidence:\n{lines}"


def evidence_of(runbook: str) -> Mapping[str, str]:
    """How each evidence value is computed, by its name, from the optional section `Evidence:` of a docstring.

    One line each, `name: formula` or `name = formula`, indented by four; a longer formula goes on in lines indented
    by eight. A line that is neither raises ValueError, as does a name that comes twice.
    """
    found: dict[str, str] = {}
    section = EVIDENCE.search(runbook)
    lines = section[1].splitlines() if section else []
    for line in filter(str.strip, lines):
        entry = EVIDENCE_ENTRY.match(line)
        if entry:
            name, formula = entry["name"], entry["formula"].strip()
            if name in found:
                raise ValueError(f"evidence {name} is described twice")
            found[name] = formula
        elif found and line.startswith(" " * 8):
            found[name] = f"{found[name]} {line.strip()}".strip()
        else:
            raise ValueError(f"not a line of the section Evidence: {line.strip()!r}; write `name: formula`")
    return found
