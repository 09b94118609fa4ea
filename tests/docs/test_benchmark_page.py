"""The tool that the page of the benchmark shows is run and scored as the page says."""

import json
import os
import re
import sys

from docs.site.console import blocks
from ledgerops.drills.benchmark.export import export
from ledgerops.drills.benchmark.splits import splits
from tests.drills.benchmark.dataset import QUIET, SINK, T0, drill
from tests.paths import ROOT
from tests.programs import finished

PAGE = (ROOT / "docs/benchmark.md").read_text("utf-8")


def scrape(at, seconds):
    return {"at": T0 + at, "job": "ledgerops", "text": f"ledgerops_last_batch_duration_seconds {seconds}\n"}


def test_the_tool_of_the_page_is_scored(tmp_path):
    drill(tmp_path / "runs", SINK, {}, [scrape(10, 0.5), scrape(50, 3.6), scrape(55, 3.6)])
    drill(tmp_path / "runs", QUIET, {}, [scrape(10, 9.0)])  # it has no trigger interval
    export(tmp_path / "set", [tmp_path / "runs"])
    [tool] = re.findall(r"```python\n# watch\.py\n(.*?)```", PAGE, re.DOTALL)
    answers = tmp_path / "answers.jsonl"
    answers.write_text(finished(sys.executable, "-c", tool, tmp_path / "set").stdout)

    command = [sys.executable, "-I", tmp_path / "set" / "score.py", tmp_path / "set", answers, "--json"]
    found = json.loads(finished(*command, cwd=tmp_path).stdout)["figures"]["all"]
    shares = {name: found[name]["share"] for name in ("recall", "AC@1", "AC@3", "silent")}
    assert shares == {"recall": 1.0, "AC@1": 0.0, "AC@3": 1.0, "silent": 1.0}
    assert found["time"] == 5.0
    assert all(f"| {name}" in PAGE or f" {name}" in PAGE for name in found if name not in ("faults", "healthy"))


def command(start):
    [found] = [step.command for block in blocks() for step in block.steps if step.command.startswith(start)]
    return found


def bash(words, folder, **environment):
    path = f"{folder}:{os.environ['PATH']}"
    return finished("bash", "-c", words, cwd=folder, env={**os.environ, "PATH": path, **environment})


def test_the_seeds_of_the_page_that_are_held_back_are_taken(tmp_path):
    for _ in range(2):
        assert bash(command("python3 -c"), tmp_path).returncode == 0
    assert len(splits(held_back=tmp_path / "held-back.txt").salts) == 2


def test_the_loop_of_the_page_draws_what_is_not_complete_and_ends_when_it_is_stopped(tmp_path):
    (tmp_path / "held-back.txt").write_text("5550123 salt\n")
    drill = tmp_path / "ledgerops"
    drill.write_text('mkdir -p "runs/dataset/seed-$3"; echo "$3" >> drawn; [ "$3" != "$SEED" ] || exit "$CODE"\n')
    drill.chmod(0o755)
    loop, drawn = f"{command('mkdir -p runs/dataset')}; {command('for seed in')}", tmp_path / "drawn"

    def run(seed, code):
        drawn.write_text("")
        bash(loop, tmp_path, SEED=str(seed), CODE=str(code))
        return [int(line) for line in drawn.read_text().split()]

    assert run(21, 130) == [20, 21], "stopped"
    assert run(22, 2) == [*range(21, 29), 5550123], "one of its drills could not be run"
    assert run(22, 1) == [22], "a miss is a result"
    assert run(22, 0) == []


def test_the_page_has_a_place_for_the_results():
    assert "## Results" in PAGE.partition("\n<!-- benchmark -->\n")[0].splitlines()
    assert "\n<!-- end of benchmark -->\n" in PAGE.partition("\n## Make the data set")[0]
