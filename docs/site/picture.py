"""Pictures of a recorded fault: docs/diagnosis.svg (`ledgerops diagnose`), report.png (its HTML report), live.png.

Usage:
    python -m docs.site.picture            # write diagnosis.svg again after a text of the diagnosis changed
    python -m docs.site.picture --check    # exit code 1 if the text of diagnosis.svg is out of date
    python -m docs.site.picture --pages    # take the screenshots report.png and live.png again; needs Chromium
"""

from __future__ import annotations

import contextlib
import html
import io
import json
import re
import shutil
import subprocess
import sys
import tempfile
from importlib.resources import files
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

from ledgerops.analysis.inputs import open_source
from ledgerops.cli import main as main_of_the_program
from ledgerops.diagnosis.report import text
from ledgerops.model.spark_progress import parse_instant
from ledgerops.runtime.replay import replay
from ledgerops.runtime.status import status_document

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs" / "diagnosis.svg"
REPORT = ROOT / "docs" / "report.png"
LIVE = ROOT / "docs" / "live.png"
REPORT_SIZE, LIVE_SIZE = "1100,1640", "760,900"  # pixels
RECORDING = "tests/recorded/drills/slow-sink/recording"
AT = "2026-11-21T18:47:18Z"  # while the sink was slow: of the pages
COLUMNS = 108
# rich's own frame without its web font: a page must not load anything from elsewhere
FRAME = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<!-- written by python -m docs.site.picture -->
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, monospace; font-size: {char_height}px;
  line-height: {line_height}px; font-variant-east-asian: full-width; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" /></clipPath>
{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def report() -> str:
    """What the command prints in a terminal, with its colours."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        main_of_the_program(["diagnose", "--from", str(ROOT / RECORDING), "--json"])
    return text(json.loads(printed.getvalue()), colour=True, columns=COLUMNS)


def picture() -> str:
    """The picture as SVG text."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text("$ ledgerops diagnose recording", style="bold"))
    for line in report().rstrip().split("\n"):
        console.print(Text.from_ansi(line))
    return console.export_svg(title="ledgerops", theme=DIMMED_MONOKAI, code_format=FRAME, unique_id="ledgerops")


def take_pages() -> None:
    """Takes the screenshots. Raises RuntimeError without Chromium."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        page = Path(folder) / "report.html"
        main_of_the_program(["diagnose", "--from", str(ROOT / RECORDING), "--at", AT, "--html", str(page)])
        # the report quotes the path that it was given
        page.write_text(page.read_text("utf-8").replace(str(ROOT / RECORDING), "recording"), "utf-8")
        _screenshot(page.as_uri(), REPORT_SIZE, REPORT)
        live = Path(folder) / "live.html"
        source = files("ledgerops.agent").joinpath("live.html").read_text("utf-8")
        # the page gets its document without a server, and the time of the recording instead of the present
        stub = f"window.fetch = async () => ({{ok: true, json: async () => ({json.dumps(_status())})}});"
        live.write_text(source.replace('"use strict";', f'"use strict"; {stub}', 1), "utf-8")
        _screenshot(live.as_uri(), LIVE_SIZE, LIVE)


def _status() -> dict[str, Any]:
    """The document of `/status` at that moment."""
    at = parse_instant(AT)
    return status_document(replay(open_source(str(ROOT / RECORDING)).observations, at).registry, at)


def _screenshot(url: str, size: str, to: Path) -> None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        raise RuntimeError("the screenshots need Chromium")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=5000"]
    subprocess.run(
        [chromium, *options, f"--window-size={size}", f"--screenshot={to}", url], check=True, capture_output=True
    )


def words(svg: str) -> str:
    """The text of a picture, which versions of rich draw differently."""
    return " ".join(html.unescape(" ".join(re.findall(r"<text[^>]*>([^<]*)</text>", svg))).split())


def main() -> int:
    """Writes a picture, or checks one. Returns the exit code."""
    if "--check" in sys.argv[1:]:
        return int(words(PICTURE.read_text("utf-8")) != words(picture()))
    if "--pages" in sys.argv[1:]:
        take_pages()
        return 0
    PICTURE.write_text(picture(), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
