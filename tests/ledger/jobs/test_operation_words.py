from ledgerops.ledger.jobs.operation_words import Words
from tests.tables import cases


@cases(
    "text, words",
    ("words", "Credit in Cash", [(1, "Credit", 6), (2, "in", 2), (3, "Cash", 4)]),
    ("blank", " \t\n ", []),
    ("empty", "", []),
    ("null", None, []),
)
def test_words_are_what_stands_between_white_space(text, words):
    assert list(Words().eval(text)) == words
