"""mkdocs: pages from outside docs/, wildcards of the navigation, links that leave docs/, breaks, and old addresses."""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from docs.site import messages, problems  # noqa: E402

# pages of the site <- files of the repository outside docs/
OUTSIDE = {
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "security-policy.md": "SECURITY.md",
}
# what makes room for a wide table
WIDE = (
    *("metrics.md", "config.md", "performance.md", "ledger-performance.md"),
    *("diagnosis.md", "diagnosis-drills.md", "benchmark.md"),
)
HIDDEN = {"index.md": ["navigation", "toc"], **{page: ["toc"] for page in WIDE}}
LINK = re.compile(r"(!?\[[^\]]*\]\()([^)\s]+)(\))")
FENCE = re.compile(r"^([ \t]*)```.*?^\1```", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"(?<=<code>)[^<]+(?=</code>)")
MOVED = '<!doctype html><title>Moved</title><meta http-equiv="refresh" content="0; url={0}"><a href="{0}">Moved</a>\n'
PAGE_OF = {file: page for page, file in OUTSIDE.items()}
SEVERITY_OF = {problem.page: problem.severity for problem in problems.listed()}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Resolves the wildcards of the navigation."""
    config.nav = _expanded(config.nav or [])
    return config


def _expanded(entries: list[Any]) -> list[Any]:
    kept: list[Any] = []
    for entry in entries:
        [(title, target)] = entry.items()
        if isinstance(target, list):
            kept.append({title: _expanded(target)})
        elif target == "problems/*":
            kept.append({title: [problems.INDEX, *_families()]})
        elif target.endswith("/*"):
            kept.append({title: _pages_of(target.removesuffix("/*"))})
        else:
            kept.append(entry)
    return kept


def _pages_of(folder: str) -> list[str]:
    """The pages of a folder, its README first."""
    names = [f"{folder}/{path.name}" for path in (ROOT / "docs" / folder).glob("*.md")]
    return sorted(names, key=lambda name: (not name.endswith("README.md"), name))


def _families() -> list[dict[str, list[dict[str, str]]]]:
    """The menu of problems by family."""
    families = problems.families().items()
    return [{family: [{each.title: each.page} for each in found]} for family, found in families]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that come from outside docs/, and that of all error messages."""
    for page, file in OUTSIDE.items():
        files.append(File.generated(config, page, content=(ROOT / file).read_text("utf-8")))
    files.append(File.generated(config, "messages.md", content=messages.page()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turns links of the repository into links of the site; what is not on the site is linked in the repository."""
    source = OUTSIDE.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    page.meta.setdefault("hide", HIDDEN.get(page.file.src_uri, []))
    if severity := SEVERITY_OF.get(page.file.src_uri):
        page.meta.setdefault("status", severity)

    def link(found: re.Match[str]) -> str:
        return f"{found[1]}{_target(found[2], source, page.file.src_uri, config.repo_url or '')}{found[3]}"

    parts, end = [], 0
    for fence in FENCE.finditer(markdown):
        parts += [LINK.sub(link, markdown[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join(parts) + LINK.sub(link, markdown[end:])


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lets long names break after their separators only, and keeps the error of a number on its line."""
    html = CODE.sub(lambda code: re.sub(r"([_{(,=/])(?=\w)", r"\1<wbr>", code[0]), html)
    return html.replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}")


def _target(target: str, source: str, page: str, repository: str) -> str:
    if re.match(r"[a-z]+:|#", target):
        return target
    path, mark, anchor = target.partition("#")
    file = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    if file == "docs/messages.md":  # made by on_files
        return target
    if not (ROOT / file).exists():
        raise PluginError(f"{source}: no {file} to link to")
    if file in PAGE_OF:
        there = PAGE_OF[file]
    elif file.startswith("docs/") and (ROOT / file).is_file():
        there = file.removeprefix("docs/")
    else:
        return f"{repository}/blob/main/{file}{mark}{anchor}"
    return posixpath.relpath(there, posixpath.dirname(page) or ".") + mark + anchor


def on_post_build(config: MkDocsConfig) -> None:
    """Old addresses of problems lead to their pages: `rules/<slug>/` and `runbooks/<Alert>/`."""
    for old, new in problems.moved().items():
        path = Path(config.site_dir, old, "index.html")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(MOVED.format(f"{posixpath.relpath(new, old)}/"), "utf-8")
