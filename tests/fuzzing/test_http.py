"""A short run of the fuzzing of the HTTP servers; the long one is `python -m tests.fuzzing.http`."""

from tests.fuzzing.http import GROWTH_BYTES, KEPT_THREADS, fuzz

REQUESTS = 1_000


def test_odd_requests_raise_nothing_and_leave_nothing_behind():
    found = fuzz(REQUESTS, seconds=60.0, seed=7)

    assert found.wrong == []
    assert found.requests > REQUESTS / 10
    assert {"200", "400", "404", "411", "421"} <= set(found.answers), "both servers were reached, and answered"
    assert found.grown_bytes < GROWTH_BYTES
    assert (found.threads <= KEPT_THREADS, found.descriptors <= 4) == (True, True)
