"""The example alert of the guide: real rules, tried by promtool."""

import pytest

from tests.paths import ROOT
from tests.promtool import tried

RULES = ROOT / "docs/examples/data-quality.yaml"
SERIES = 'ledgerops_observed{job="ledgerops", app="shop", instance="i", query="orders", name="quality", field="%s"}'


@pytest.mark.parametrize(
    ("bad", "fires"),
    [
        pytest.param("20x10", True, id="two of a hundred for minutes"),
        pytest.param("0x10", False, id="none"),
        pytest.param("10x10", False, id="exactly the limit"),
        pytest.param("20 0x9", False, id="one batch only"),
    ],
)
def test_the_example_alert_fires_on_a_lasting_share(tmp_path, bad, fires):
    alert = {
        "exp_labels": {
            "severity": "warning", "job": "ledgerops", "app": "shop", "instance": "i", "query": "orders",
        },
        "exp_annotations": {
            "summary": "orders: 20 orders of the newest batch have no customer, more than 1 %.",
            "action": "Look at the topic of the orders; ask its producer what changed.",
        },
    }  # fmt: skip
    case = {
        "interval": "1m",
        "input_series": [
            {"series": SERIES % "rows", "values": "1000x10"},
            {"series": SERIES % "without_customer", "values": bad},
        ],
        "alert_rule_test": [
            {"eval_time": "5m", "alertname": "OrdersWithoutCustomer", "exp_alerts": [alert] if fires else []}
        ],
    }

    passed, said = tried(tmp_path, {"rule_files": [str(RULES)], "tests": [case]})
    assert passed, said


def test_the_guide_shows_the_example_as_it_is():
    assert RULES.read_text("utf-8") in (ROOT / "docs/guides/prometheus.md").read_text("utf-8")
