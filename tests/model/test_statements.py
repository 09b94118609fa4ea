from ledgerops.model.records import FailedStatement
from ledgerops.model.statements import MAX_ERRORS, failed_statements, is_lost


def failing(*spans):
    return failed_statements(FailedStatement(since, until, "no") for since, until in spans)


def test_a_statement_within_another_one_is_a_part_of_it():
    found = failing((5.0, 6.0), (1.0, 4.0), (1.0, 2.0), (3.0, 9.0), (4.0, 5.0))
    assert [(each.started, each.ended) for each in found] == [(1.0, 4.0), (4.0, 5.0), (5.0, 6.0)]


def test_what_began_while_one_ran_is_lost():
    found = failing((1.0, 2.0), (4.0, 6.0))
    assert [at for at in (None, 0.5, 1.0, 1.9, 2.0, 3.0, 5.0, 6.0) if is_lost(at, found)] == [1.0, 1.9, 5.0]
    assert not is_lost(1.0, ())


def test_of_a_function_that_catches_an_exception_for_each_row_few_texts_are_kept_and_all_times():
    found = failing(*((float(n), n + (0.9 if n % 100 else 1.0)) for n in range(1000)))
    assert len(found) == 1000
    assert [each.started for each in found if each.error][:2] == [0.0, 100.0]
    assert sum(bool(each.error) for each in found) == MAX_ERRORS
