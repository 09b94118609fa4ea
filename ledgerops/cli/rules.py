"""Lists the diagnosis rules, or prints the runbook of one and the address of its page.

Examples:
    ledgerops rules
    ledgerops rules key-skew
"""

import argparse
import re
from textwrap import indent

from ledgerops.diagnosis.do_first import section
from ledgerops.diagnosis.rule import Rule
from ledgerops.diagnosis.rules import BY_SLUG, RULES
from ledgerops.diagnosis.runbook import PAGES, on_call
from ledgerops.errors import UserError, did_you_mean

ALERT = re.compile("[A-Z]")  # the words of an alert's name: LedgerQueryStuck is that of query-stuck


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("slug", nargs="?", metavar="RULE", help="the rule, or the alert of one, whose runbook to print")


def _runbook(rule: Rule) -> str:
    """The runbook with what to do first below its title."""
    title, _, body = on_call(rule.runbook).strip().partition("\n")
    return f"{title}\n\nDo first:\n{indent(section(rule.slug), '    ')}{body}"


def run(args: argparse.Namespace) -> int:
    if args.slug is None:
        for rule in RULES:
            print(f"{rule.slug:<24} {rule.severity:<9} {rule.title.split(': ', 1)[-1]}")
        return 0
    slug = ALERT.sub(lambda name: f"{'-' * bool(name.start())}{name[0].lower()}", args.slug.removeprefix("Ledger"))
    found = BY_SLUG.get(slug)
    if found is None:
        raise UserError(f"no rule {args.slug!r}; {did_you_mean(slug, BY_SLUG, 'see ledgerops rules')}")
    print(f"{found.slug} ({found.severity})")
    print(_runbook(found))
    if found.explains:
        print(f"Explains: {', '.join(found.explains)}.")
    print(f"Its page, with how each number is computed: {PAGES}/{found.slug}.md")
    return 0
