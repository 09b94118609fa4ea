import pytest

from ledgerops.ledger.jobs.operation_words import JOB, Words
from tests.ledger.jobs.oracle import ask, disordered, rows_of

OPERATIONS = (None, "", "Withdrawal in Cash", "  Credit\tCard  Withdrawal ", "P\u0159evod", "in in")
WORDS = """
SELECT transaction_id, customer_id, event_time, position::INT, words[position], length(words[position])
FROM (
    SELECT *, unnest(range(1, len(words) + 1)) AS position
    FROM (SELECT *, string_split_regex(trim(operation), '\\s+') AS words FROM rows WHERE trim(operation) != '')
)
ORDER BY ALL
"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("Credit in Cash", [(1, "Credit", 6), (2, "in", 2), (3, "Cash", 4)], id="words"),
        pytest.param(" \t\n ", [], id="blank"),
        pytest.param("", [], id="empty"),
        pytest.param(None, [], id="null"),
    ],
)
def test_words_are_what_stands_between_white_space(text, words):
    assert list(Words().eval(text)) == words


@pytest.mark.spark
def test_every_word_of_every_row_is_written(feed):
    case = feed(JOB)
    runs = disordered()
    for number, row in enumerate(rows_of(runs)):
        row["operation"] = OPERATIONS[number % len(OPERATIONS)]
    case.run_each(runs)

    expected = ask(WORDS, rows_of(runs))
    assert case.rows() == expected
    assert {row[4] for row in expected} >= {"Withdrawal", "Card", "P\u0159evod"}
