"""What `make docs` would refuse, found without building the site: orphan pages, links to nowhere."""

import posixpath
import re

import yaml

from docs.site import problems
from docs.site.console import pages
from ledgerops.diagnosis.rules import RULES
from ledgerops.mixin.alerts import ALERTS
from tests.paths import ROOT

CONFIG = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))
# pages that docs/site/hooks.py adds
ADDED = {"changelog.md", "contributing.md", "security-policy.md", "messages.md"}
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^([ \t]*)```.*?^\1```", re.MULTILINE | re.DOTALL)
DOCS = ROOT / "docs"


def listed(entries):
    for entry in entries:
        [target] = entry.values()
        yield from listed(target) if isinstance(target, list) else [target]


TARGETS = list(listed(CONFIG["nav"]))
FOLDERS = {target.removesuffix("/*") for target in TARGETS if target.endswith("/*")}


def links(page):
    text = re.sub(r"`[^`\n]*`", "", FENCE.sub("", page.read_text("utf-8")))
    return [link for link in LINK.findall(text) if not re.match(r"[a-z]+:|#", link)]


def test_decisions_are_numbered_without_a_gap_or_a_second_of_a_number():
    files = sorted((DOCS / "decisions").glob("[0-9]*.md"))
    assert [file.name[:3] for file in files] == [f"{number:03}" for number in range(1, len(files) + 1)]
    titles = {file.name: file.read_text("utf-8").partition("\n")[0] for file in files}
    assert {name: title for name, title in titles.items() if not title.startswith(f"# {int(name[:3])}. ")} == {}


def test_every_page_is_in_the_navigation():
    written = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    assert sorted(page for page in written - set(TARGETS) if posixpath.dirname(page) not in FOLDERS) == []


def test_the_navigation_names_pages_that_exist():
    missing = {page for page in TARGETS if not page.endswith("/*") and not (DOCS / page).is_file()}
    assert missing == ADDED


def test_the_menu_of_problems_has_every_page():
    written = {f"problems/{page.name}" for page in (DOCS / "problems").glob("*.md")}
    assert sorted(problem.page for problem in problems.listed()) == sorted(written - {problems.INDEX})


def test_the_old_addresses_of_rules_and_runbooks_lead_to_pages_that_exist():
    moved = problems.moved()
    assert {f"rules/{rule.slug}" for rule in RULES} | {f"runbooks/{alert.name}" for alert in ALERTS} <= set(moved)
    assert [new for new in moved.values() if not (DOCS / f"{new}.md").is_file() and new != "problems"] == []


def sections(page):
    """The anchors that a code host gives the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_readme_which_is_not_on_the_site_links_to_sections_that_exist():
    named = [link.split("#") for link in links(ROOT / "README.md") if "#" in link]
    assert len(named) > 5
    assert [(page, anchor) for page, anchor in named if anchor not in sections(ROOT / page)] == []


def test_every_link_leads_to_a_file():
    broken = [
        f"{page.relative_to(ROOT)}: {link}"
        for page in [*pages(), ROOT / "CHANGELOG.md", ROOT / "SECURITY.md"]
        for link in links(page)
        if not (page.parent / link.partition("#")[0]).exists() and link != "messages.md"  # made when the site is built
    ]

    assert broken == []


def test_nothing_is_loaded_from_elsewhere():
    assert CONFIG["theme"]["font"] is False
    assert CONFIG["strict"] is True
