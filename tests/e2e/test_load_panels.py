"""The load generator's own series: those of the catalogue, and panels show them while a plan runs."""

import subprocess
import sys
import time

import pytest
from prometheus_client.parser import text_string_to_metric_families

from ledgerops.metrics import GENERATOR_METRICS
from ledgerops.servers.process import answers, free_port
from tests.mixin.dashboards.replayed import evaluated
from tests.mixin.dashboards.test_waiting import LOAD, WAITING, asked
from tests.programs import needed, until
from tests.samples import samples
from tests.serving import fetched

SECONDS = 6
EVERY = 1.0  # seconds between scrapes


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """What its endpoint says, second by second."""
    folder, port = tmp_path_factory.mktemp("load"), free_port()
    options = ("--to", "landing", "--duration", str(SECONDS), "--metrics-port", str(port))
    url = f"http://127.0.0.1:{port}/metrics"
    found = []
    with (folder / "out").open("w") as out:
        run = subprocess.Popen(
            [sys.executable, "-m", "ledgerops", "load", "default", *options], cwd=folder, stdout=out, stderr=out
        )
        try:
            until(lambda: answers(url) or run.poll() is not None, 60, "the generator's endpoint")
            due = time.monotonic()
            while run.poll() is None:
                until(lambda: time.monotonic() >= due or run.poll() is not None, 5, "the next scrape")  # noqa: B023
                due += EVERY
                try:
                    found.append(fetched(url, 2))
                except OSError:
                    break  # it has ended
        finally:
            run.kill()
            run.wait(10)
    assert len(found) > 3, (folder / "out").read_text()
    return found


def test_its_families_kinds_and_labels_are_those_of_the_catalogue(texts):
    served = {}
    for family in text_string_to_metric_families(texts[-1]):
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        served[family.name + ("_total" if family.type == "counter" else "")] = (family.type, labels)

    assert served == {metric.name: (metric.kind, set(metric.labels)) for metric in GENERATOR_METRICS}


def test_prometheus_own_linter_finds_nothing_in_its_page(texts):
    found = subprocess.run([needed("promtool"), "check", "metrics"], input=texts[-1], capture_output=True, text=True)
    assert (found.returncode, found.stdout + found.stderr) == (0, "")


def test_the_panels_of_the_load_test_show_them(texts, tmp_path):
    panels = [panel for _, panel in WAITING if panel.drill == LOAD]
    wanted = {each for panel in panels for each in asked(panel)}
    found = evaluated(tmp_path, [page for text in texts if (page := samples(text))], wanted, every=EVERY)

    assert len(panels) == 5
    assert found == wanted
