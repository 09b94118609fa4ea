from load.bench.many import OFFSETS_SECONDS, TRIGGER_SECONDS, simulate


def test_a_healthy_query_is_judged_after_each_batch_and_between_them_by_the_tick_only():
    found = simulate(queries=3, warm=TRIGGER_SECONDS, measured=2 * TRIGGER_SECONDS)
    per_trigger = found.judgements / 3 * TRIGGER_SECONDS
    assert 1.0 < per_trigger <= 2.5 < TRIGGER_SECONDS / OFFSETS_SECONDS
    assert 0 < found.judging < found.busy
