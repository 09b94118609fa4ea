"""Families of the operators that keep state."""

import pytest

from ledgerops.metrics.state import METRICS
from ledgerops.signals.query_view import QueryView
from tests.build import T0, batch, history, operator

[PARTITIONS] = [each for each in METRICS if each.name == "ledgerops_state_partitions"]


@pytest.mark.parametrize(
    ("setting", "stores", "partitions"),
    [
        pytest.param(200, 1, 1, id="a count of all rows, without keys"),
        pytest.param(4, 4, 4, id="one store for each"),
        pytest.param(4, 16, 4, id="a join with four stores for each"),
        pytest.param(4, None, 4, id="stores are not told"),
    ],
)
def test_state_partitions_are_those_that_hold_state(setting, stores, partitions):
    told = operator(shuffle_partitions=setting, stores=stores)
    view = QueryView(history([batch(0, operators=(told,))]), T0 + 1)
    assert PARTITIONS.read(view) == {("stateStoreSave",): partitions}
