"""docs/diagnosis.svg and docs/report.png: what `ledgerops diagnose` and its HTML report show for a recorded fault.

Usage:
    python -m docs.site.picture            # write diagnosis.svg again after a text of the diagnosis changed
    python -m docs.site.picture --check    # exit code 1 if the text of diagnosis.svg is out of date
    python -m docs.site.picture --report   # take the screenshot report.png again; needs Chromium
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
from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

from ledgerops.cli import main as main_of_the_program
from ledgerops.diagnosis.report import text

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs" / "diagnosis.svg"
REPORT = ROOT / "docs" / "report.png"
REPORT_SIZE = "1100,1640"  # pixels: down to the parts of a typical batch
RECORDING = "tests/recorded/drills/slow-sink/recording"
AT = "2026-11-21T18:47:18Z"  # while the sink was slow
COMMAND = f"ledgerops diagnose --from {RECORDING} --at {AT}"
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
        main_of_the_program(["diagnose", "--from", str(ROOT / RECORDING), "--at", AT, "--json"])
    return text(json.loads(printed.getvalue()), colour=True)


def picture() -> str:
    """The picture as SVG text."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text("$ ledgerops diagnose --from recording", style="bold"))
    for line in report().rstrip().split("\n"):
        shown = Text.from_ansi(line)
        indent = len(shown.plain) - len(shown.plain.lstrip())
        console.print(Padding(shown[indent:], (0, 0, 0, indent)))
    return console.export_svg(title="ledgerops", theme=DIMMED_MONOKAI, code_format=FRAME, unique_id="ledgerops")


def screenshot(to: Path) -> None:
    """Takes a picture of the HTML report. Raises RuntimeError without Chromium."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        raise RuntimeError("the screenshot needs Chromium")
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        page = Path(folder) / "report.html"
        main_of_the_program(["diagnose", "--from", str(ROOT / RECORDING), "--at", AT, "--html", str(page)])
        # the report quotes the path that it was given
        page.write_text(page.read_text("utf-8").replace(str(ROOT / RECORDING), "recording"), "utf-8")
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={REPORT_SIZE}"]
        subprocess.run([chromium, *options, f"--screenshot={to}", page.as_uri()], check=True, capture_output=True)


def words(svg: str) -> str:
    """The text of a picture, which versions of rich draw differently."""
    return " ".join(html.unescape(" ".join(re.findall(r"<text[^>]*>([^<]*)</text>", svg))).split())


def main() -> int:
    """Writes a picture, or checks one. Returns the exit code."""
    if "--check" in sys.argv[1:]:
        return int(words(PICTURE.read_text("utf-8")) != words(picture()))
    if "--report" in sys.argv[1:]:
        screenshot(REPORT)
        return 0
    PICTURE.write_text(picture(), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
