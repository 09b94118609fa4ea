"""The example alert of the guide: real rules, tried by promtool."""

from tests.paths import ROOT
from tests.promtool import tried
from tests.tables import cases

RULES = ROOT / "docs/examples/data-quality.yaml"
SERIES = 'ledgerops_observed{job="ledgerops", app="shop", instance="i", query="orders", name="quality", field="%s"}'


@cases(
    "bad, fires",
    ("two of a hundred for minutes", "20x10", True),
    ("none", "0x10", False),
    ("exactly the limit", "10x10", False),
    ("one batch only", "20 0x9", False),
)
def test_the_example_alert_fires_on_a_lasting_share(tmp_path, bad, fires):
    labels = {"severity": "warning", "job": "ledgerops", "app": "shop", "instance": "i", "query": "orders"}
    summary = "orders: 20 orders of the newest batch have no customer, more than 1 %."
    told = {"summary": summary, "action": "Look at the topic of the orders; ask its producer what changed."}
    alerts = [{"exp_labels": labels, "exp_annotations": told}] if fires else []
    values = {"rows": "1000x10", "without_customer": bad}
    series = [{"series": SERIES % field, "values": value} for field, value in values.items()]
    asked = [{"eval_time": "5m", "alertname": "OrdersWithoutCustomer", "exp_alerts": alerts}]
    case = {"interval": "1m", "input_series": series, "alert_rule_test": asked}

    passed, said = tried(tmp_path, {"rule_files": [str(RULES)], "tests": [case]})
    assert passed, said


def test_the_guide_shows_the_example_as_it_is():
    assert RULES.read_text("utf-8") in (ROOT / "docs/guides/prometheus.md").read_text("utf-8")
