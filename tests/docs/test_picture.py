"""The picture of the README shows what the program says of the recording today."""

from docs.site.picture import PICTURE, picture, words


def test_the_picture_is_up_to_date():
    assert words(PICTURE.read_text("utf-8")) == words(picture()), "run python -m docs.site.picture"


def test_the_picture_loads_nothing():
    text = PICTURE.read_text("utf-8")
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")


def test_another_text_is_noticed():
    assert words("<text>a cause</text>") != words("<text>another</text>")
