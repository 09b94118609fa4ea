"""Figures that a page quotes from another one are those of that page."""

import re

import pytest

from tests.paths import ROOT


def words(page):
    return " ".join((ROOT / page).read_text("utf-8").split())


def figures(page, pattern):
    found = re.search(pattern, words(page))
    assert found, f"{page}: {pattern}"
    return found.groups()


@pytest.mark.parametrize("page", ["README.md", "docs/faq.md"])
def test_what_observing_costs_is_what_was_measured(page):
    measured = r"takes ([\d.]+) to ([\d.]+) % of a bare run's CPU, ([\d.]+) ms in the listener for each event"
    least, most, callback = map(float, figures("docs/performance.md", measured))
    assert f"{least:.1f} to {most:.1f} % of the CPU of a bare run" in words(page)
    assert f"{callback:.1f} ms" in words(page)


def test_the_memory_that_observing_takes_is_what_was_measured():
    [memory] = figures("docs/performance.md", r"and (\d+ MiB) in the Python driver")
    assert f"and {memory} in the driver" in words("README.md")


def test_how_often_the_diagnosis_is_right_is_what_was_scored():
    accuracy, readme = "docs/diagnosis.md", words("README.md")
    drawn, faults, live, log, healthy, silent = figures(
        accuracy, r"(\d+) applications \| of (\d+): live (\d+), recording \d+, event log (\d+) \| of (\d+): live (\d+)"
    )
    [median] = figures(accuracy, r"\| all faults \| live (?:\| [\d.]+ ){3}\| ([\d.]+ s) \|")
    found, quiet = figures(accuracy, r"found (\d+ of \d+) \| (\d+ of \d+)")
    [ended] = figures(accuracy, r"harm ended in (\d+ of \d+)")

    assert f"[{drawn} applications drawn at random]" in readme
    assert f"| {live} of {faults} while they ran, median {median} after the effect; {log} from event logs |" in readme
    assert f"| {silent} of {healthy} |" in readme
    assert f"| {found} | {quiet} |" in readme
    assert f"the harm ended in [{ended} cases]" in readme


def test_what_was_found_in_applications_of_others_is_what_was_scored():
    applications, readme = "docs/applications.md", words("README.md")
    recording, log = figures(applications, r"faults named first \| (\d+ of \d+) \| (\d+) of \d+")
    silent = figures(applications, r"without a warning \| (\d+ of \d+) \| (\d+ of \d+)")

    assert f"| {recording} from recordings, {log} from event logs | {silent[0]} from both |" in readme
    assert silent[0] == silent[1]
