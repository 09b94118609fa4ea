import pytest

from ledgerops.model.advance import Advance, advanced
from ledgerops.model.history import History
from tests.build import T0, batch


def after(*told: tuple[float | None, float]) -> Advance | None:
    known = None
    for value, at in told:
        known = advanced(known, value, at)
    return known


def test_a_time_that_moves_is_known_with_its_longest_pause():
    assert after((100.0, 0.0), (102.0, 2.0), (103.0, 9.0), (105.0, 11.0)) == Advance(105.0, 11.0, 100.0, 0.0, 3, 7.0)


@pytest.mark.parametrize("later", [None, 104.0, 105.0])
def test_an_absent_an_equal_and_an_earlier_value_are_no_move(later):
    assert after((100.0, 0.0), (105.0, 2.0), (later, 4.0)) == Advance(105.0, 2.0, 100.0, 0.0, 1, 2.0)


def test_nothing_is_known_before_the_first_value_and_no_pace_before_the_second():
    assert after((None, 0.0)) is None
    assert after((None, 0.0), (5.0, 2.0)) == Advance(5.0, 2.0, 5.0, 2.0)
    assert after((100.0, 0.0)).pace is None
    assert after((100.0, 0.0), (160.0, 2.0)).pace == 30.0


def test_a_run_has_its_own():
    history = History("counts")
    history.add(batch(batch_id=0, run_id="a", started=T0, watermark=T0 - 10, event_time_max=T0))
    history.add(batch(batch_id=1, run_id="a", started=T0 + 2, watermark=T0 - 8, event_time_max=T0 + 2))
    assert (history.watermark, history.newest_event) == (
        Advance(T0 - 8, T0 + 2, T0 - 10, T0, 1, 2.0),
        Advance(T0 + 2, T0 + 2, T0, T0, 1, 2.0),
    )

    history.add(batch(batch_id=2, run_id="b", started=T0 + 9, watermark=T0 - 8, event_time_max=T0 + 9))
    assert (history.watermark.moves, history.newest_event.moves) == (0, 0)
