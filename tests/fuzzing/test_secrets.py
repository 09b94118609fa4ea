"""A short run of the fuzzing of the masking; the long one is `python -m tests.fuzzing.secrets`."""

from collections import Counter

from tests.fuzzing.secrets import FORMS, case, got_through
from tests.tables import cases

SECRETS = 4_000


def test_no_part_of_a_credential_gets_through_in_any_form():
    tried = Counter()
    left = []
    for number in range(SECRETS):
        form, value, text = case(11, number)
        tried[form] += 1
        if found := got_through(value, text):
            left.append((form, number, found))

    assert left == []
    assert set(tried) == set(FORMS)


@cases(
    "value, text",
    ("a word that stands alone", "abcdefgh-ijkl", "bad name abcdefgh-ijkl"),
    ("a part of it", "abcdefghijkl", "bad name efghijkl"),
)
def test_a_secret_that_is_still_there_counts(value, text):
    assert got_through(value, text) is not None
