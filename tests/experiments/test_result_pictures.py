"""Pictures of experiments: bars beside each other, words below the drawing."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest
from matplotlib.figure import Figure

from blowfish_fast.advice.experiments.experiment import PaperVerdict, Settings, Summary
from blowfish_fast.advice.experiments.result_files import (
    format_value,
    grouped_bars,
    legend_above,
    write_figure,
)

SETTINGS = Settings(trials=1, seed=1)


@pytest.fixture
def axes():
    return Figure().subplots()


@pytest.mark.parametrize("methods", [["a"], ["a", "b"], ["a", "b", "c"]])
def test_bars_of_a_place_stand_beside_each_other_around_it(axes, methods):
    found = {(place, one): 2.0 for place in range(3) for one in methods}
    grouped_bars(axes, found, [0, 1, 2], methods)
    for place in range(3):
        bars = [some.patches[place] for some in axes.containers]
        ends = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in bars]
        assert (ends[0][0], ends[-1][1]) == pytest.approx((place - 0.4, place + 0.4))
        for (_, end), (begin, _) in itertools.pairwise(ends):
            assert begin == pytest.approx(end)


def test_what_is_missing_or_nothing_has_no_bar(axes):
    found = {("x", "all", "a"): 3.0, ("x", "none", "a"): 0.0}
    grouped_bars(axes, found, ["none", "all", "missing"], ["a"], at=("x",))
    (bar,) = axes.containers[0].patches
    assert (bar.get_x() + bar.get_width() / 2, bar.get_height()) == (1.0, 3.0)
    assert [one.get_text() for one in axes.get_xticklabels()][2] == "missing"


@pytest.mark.parametrize(("methods", "columns"), [(2, 2), (4, 3)])
def test_a_legend_has_no_more_columns_than_names(axes, methods, columns):
    grouped_bars(axes, {}, [0], list(range(methods)))
    legend_above(axes.figure, axes, columns=3)
    (legend,) = axes.figure.legends
    assert (legend._ncols, legend.get_frame_on()) == (columns, False)


@pytest.mark.parametrize("width", [2.0, 8.0])
def test_words_stand_below_the_drawing_and_take_nothing_from_it(tmp_path, width):
    seen = []
    experiment = SimpleNamespace(
        size=(width, 3.0),
        title="Errors",
        claim="as the paper has it " * 20,
        protocol="",
        draw=lambda rows, above: seen.append((rows, above)),
    )
    summary = Summary(["set"], [["a"]], PaperVerdict("reproduced", "so it is"))
    write_figure(tmp_path / "one.png", experiment, SETTINGS, [{"set": "a"}], summary)
    ((rows, above),) = seen
    figure = above.figure
    beneath = next(one for one in figure.subfigs if one is not above)
    (text,) = beneath.texts
    lines = text.get_text().splitlines()
    # Sixteen letters an inch, and at least a line of sixty; a line takes .18 inches.
    most = max(len(line) for line in lines)
    assert max(60, 16 * width) - 20 < most <= max(60, 16 * width)
    assert "reproduced: so it is" in " ".join(lines)
    needed = 0.18 * len(lines) + 0.15
    assert tuple(figure.get_size_inches()) == pytest.approx((width, 3.0 + needed))
    inches = [one.bbox.height / figure.dpi for one in (above, beneath)]
    assert inches == pytest.approx([3.0, needed])
    assert above.bbox.y0 >= beneath.bbox.y1 - 1e-6
    assert rows == [{"set": "a"}]
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.001, "0.001"),
        (0.00099, "9.90e-04"),
        (-0.5, "-0.5"),
        (999.5, "1,000"),
        (1e6, "1.00e+06"),
        (999_999.0, "999,999"),
        (float("-inf"), "-inf"),
        (True, "True"),
    ],
)
def test_numbers_change_their_form_where_it_becomes_shorter(value, text):
    assert format_value(value) == text
