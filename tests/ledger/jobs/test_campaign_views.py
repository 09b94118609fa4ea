from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from ledgerops.ledger.jobs.campaign_views import JOB
from ledgerops.ledger.sources.ads import ad_events
from tests.ledger.jobs.feed import ARROW, dropped, instant
from tests.ledger.jobs.oracle import ask_tables, batches_of, disordered

pytestmark = pytest.mark.spark

VIEWS = """
SELECT start, start + INTERVAL 10 SECONDS AS ends, campaign, count(*)
FROM (
    SELECT *, time_bucket(INTERVAL 10 SECONDS, event_time) AS start,
        printf('CM%03d', (substr(ad_id, 3)::INT + 9) // 10) AS campaign
    FROM rows
)
WHERE ends > late AND ends <= $evict GROUP BY start, campaign ORDER BY ALL
"""


def event(ad_id, event_time, event_type="view"):
    return {"ad_id": ad_id, "event_type": event_type, "event_time": instant(event_time)}


def events():
    """The disordered transactions as ad events, sixty times as fast, of twenty ads in two campaigns."""
    noon = instant("12:00")
    for run in disordered():
        batches = []
        for batch in run:
            rows = ad_events(pa.RecordBatch.from_pylist(batch, schema=ARROW["transactions"])).to_pylist()
            for row in rows:
                row["event_time"] = noon + (row["event_time"] - noon) / 60
                row["ad_id"] = f"AD{int(row['ad_id'][2:]) % 20 + 1:04}"
            batches.append([*rows, *(rows if batch[0]["customer_id"] != "C9" else [event("AD0001", "21:00")])])
        yield batches


def test_views_are_counted_by_campaign_and_ten_seconds(feed):
    case = feed(JOB)
    late, began = 0, datetime.now(UTC)
    for run in events():
        case.add(*run, name="ad_events")
        late += dropped(case.run(lateness="10 seconds"))

    views = [[[row for row in batch if row["event_type"] == "view"] for batch in run] for run in events()]
    batches = batches_of(views, timedelta(seconds=10))
    rows = pa.Table.from_pylist([{**row, "late": batch.late} for batch in batches for row in batch.rows])
    expected = ask_tables(VIEWS, {"rows": rows}, evict=batches[-1].evict)
    assert case.rows("window_start, window_end, campaign_id, views") == expected
    assert max(row[3] for row in expected) > 2
    assert late > 5
    written = case.rows("min(updated_at), max(updated_at)")[0]
    assert began <= written[0] <= written[1] <= datetime.now(UTC)


def test_only_views_of_known_ads_count_and_only_they_move_the_watermark(feed):
    case = feed(JOB)
    case.work(
        [event("AD0001", "10:00"), event("AD0010", "10:00:09.999999"), event("AD0011", "10:00:05")],
        [event("AD0001", "10:00:01", "click"), event("AD9999", "10:00:02"), event(None, "10:00:02")],
        [event("AD0001", "13:00", "purchase")],
        [event("AD0001", "10:00:02")],
        [event("AD0001", "11:00")],
        name="ad_events",
        lateness="0 seconds",
    )

    assert case.rows("window_start, window_end, campaign_id, views") == [
        (instant("10:00"), instant("10:00:10"), "CM001", 3),
        (instant("10:00"), instant("10:00:10"), "CM002", 1),
    ]
