from __future__ import annotations

import pytest

from ledgerops.analysis.html.axes import Scale, ceiling, instants
from ledgerops.analysis.html.markup import Markup, tag, text


@pytest.mark.parametrize(
    ("values", "top"), [([], 1.0), ([4.1], 5.0), ([0.2], 1.0), ([1234.0], 1600.0), ([10.0], 10.0), ([9.7e8], 1e9)]
)
def test_an_axis_ends_at_a_round_number_above_all(values, top):
    assert ceiling(values, 1.0) == pytest.approx(top)


def test_what_lies_outside_is_drawn_at_the_edge():
    scale = Scale(10.0, 20.0, 0.0, 100.0)
    assert [scale(value) for value in (0.0, 10.0, 15.0, 99.0)] == [0.0, 0.0, 50.0, 100.0]
    assert Scale(5.0, 5.0, 3.0, 9.0)(5.0) == 3.0


@pytest.mark.parametrize("span", [0.001, 1.0, 59.0, 3600.0, 86_400.0, 4e8])
def test_there_are_a_few_round_instants_whatever_the_span(span):
    told = instants(1_800_000_000.0, 1_800_000_000.0 + span)
    assert len(told) <= 9 and all(at >= 1_800_000_000.0 for at, _ in told)


def test_only_markup_is_taken_as_markup():
    assert tag("b", "<i>", Markup("<i></i>"), class_='"x"') == '<b class="&quot;x&quot;">&lt;i&gt;<i></i></b>'
    assert text("a\x00b\u202e") == "a?b?"
    assert tag("rect", x=1.26, y=2.0) == '<rect x="1.3" y="2"/>'
