import pytest

from ledgerops.errors import UserError
from ledgerops.feed import choose_feed


@pytest.fixture
def data(tmp_path):
    (tmp_path / "transactions.csv").write_text("trans_id\n")
    return tmp_path


def test_without_anything_it_is_the_default_plan():
    feed = choose_feed(None, environ={})

    assert (feed.kind, feed.title, feed.folder, str(feed)) == (
        "embedded",
        "default",
        "default",
        "the embedded source, plan default",
    )


def test_data_make_it_a_replay(data):
    feed = choose_feed(None, environ={"LEDGEROPS_DATA": str(data)})

    assert (feed.kind, feed.folder, str(feed)) == ("replay", "replay", f"a replay of {data}/transactions.csv")


def test_a_plan_wins_over_data(data):
    assert choose_feed(None, plan="whale", environ={"LEDGEROPS_DATA": str(data)}).kind == "embedded"


def test_a_plan_file_gives_the_folder_its_name(tmp_path):
    file = tmp_path / "my plan.yaml"
    file.write_text("phases:\n  - shape: constant\n    rate: 10\n")

    assert choose_feed(None, plan=str(file), environ={}).folder == "my-plan"


def test_another_rate_is_another_run():
    assert choose_feed(None, environ={}).digest != choose_feed(None, scale=2.0, environ={}).digest


def test_other_rows_are_another_run(data):
    before = choose_feed(None, environ={"LEDGEROPS_DATA": str(data)})
    (data / "transactions.csv").write_text("trans_id\n1\n")

    assert choose_feed(None, environ={"LEDGEROPS_DATA": str(data)}).digest != before.digest


def test_a_replay_without_data_is_refused():
    with pytest.raises(UserError, match="nothing to replay; set LEDGEROPS_DATA"):
        choose_feed("replay", environ={})
