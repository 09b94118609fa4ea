import pytest

from ledgerops.diagnosis.cause import check
from ledgerops.diagnosis.causes.table_scan import CAUSE
from ledgerops.diagnosis.rules import RULES
from tests.diagnosis.conftest import stage

INPUT = stage(records=[50, 50], seconds=[0.2, 0.2])
TABLE = stage(records=[500_000, 500_000], seconds=[3.5, 3.5], began=0.3, shuffle=False)
SLOW = {"seconds": [4.0] * 8, "rows": 100, "phases": [{"add_batch": 3.9}] * 8}


def test_a_table_that_each_batch_reads_is_told_with_its_rows(history):
    [finding] = check(CAUSE, history(**SLOW, stages=[[INPUT, TABLE]] * 8, warm=0))

    assert finding.summary == (
        "3.5 s of a batch of 4.0 s are work on 1,000,000 rows that it reads beside the 100 of its sources"
    )
    assert {each.name: each.value for each in finding.evidence}["scanned_rows"] == 1_000_000
    assert finding.remedies[1].action == "set the trigger interval to 6 s or more, if results may be that old"


@pytest.mark.parametrize(("rows", "named"), [(100, "table-scan"), (1_000_000, "input-overload")])
def test_it_is_the_table_or_more_input_than_the_query_can_process(history, rows, named):
    view = history(
        **SLOW | {"seconds": [4.0] * 20, "rows": rows, "phases": [{"add_batch": 3.9}] * 20}, stages=[[TABLE]] * 20
    )

    assert [
        rule.slug for rule in RULES if rule.slug in ("table-scan", "input-overload") and list(rule.check(view))
    ] == [named]


@pytest.mark.parametrize(
    ("plan", "first"),
    [
        pytest.param({}, "see in the Spark UI, page SQL, which scan", id="any sink"),
        pytest.param({"sink": "foreachBatch"}, "look for reads of a table in the function", id="a function"),
    ],
)
def test_where_to_look_depends_on_the_sink(history, plan, first):
    [finding] = check(CAUSE, history(**SLOW, stages=[[INPUT, TABLE]] * 8, warm=0, plan=plan))

    assert finding.remedies[0].action.startswith(first)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param({"stages": [[TABLE]] * 8, "rows": 1_000_000}, id="the rows are the input's"),
        pytest.param({"stages": [[INPUT, TABLE]] * 8, "warm_seconds": 4.0, "interval": 10.0}, id="in time"),
        pytest.param(
            {
                "stages": [
                    [
                        stage(records=[50, 50], seconds=[3.5, 3.5]),
                        stage(records=[900, 900], shuffle=False, seconds=[0.3, 0.3]),
                    ]
                ]
                * 8
            },
            id="it takes little",
        ),
        pytest.param({}, id="no tasks known"),
    ],
)
def test_others_are_not(history, case):
    assert list(check(CAUSE, history(**SLOW | {"warm": 0} | case))) == []
