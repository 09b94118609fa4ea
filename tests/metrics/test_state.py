"""Families of the operators that keep state."""

from ledgerops.metrics.state import METRICS
from ledgerops.signals.query_view import QueryView
from tests.build import T0, batch, history, operator
from tests.tables import cases

[PARTITIONS] = [each for each in METRICS if each.name == "ledgerops_state_partitions"]


@cases(
    "setting, stores, partitions",
    ("a count of all rows, without keys", 200, 1, 1),
    ("one store for each", 4, 4, 4),
    ("a join with four stores for each", 4, 16, 4),
    ("stores are not told", 4, None, 4),
)
def test_state_partitions_are_those_that_hold_state(setting, stores, partitions):
    told = operator(shuffle_partitions=setting, stores=stores)
    view = QueryView(history([batch(0, operators=(told,))]), T0 + 1)
    assert PARTITIONS.read(view) == {("stateStoreSave",): partitions}
