"""Pictures are tested on what they draw: lines, labels, limits."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import InputError, MissingExtraError

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


@pytest.fixture
def close():
    yield
    from matplotlib import pyplot

    pyplot.close("all")


def line_release(cells=20, edges=None):
    domain = (
        bf.Domain.from_edges(range(cells + 1), name="age")
        if edges
        else bf.Domain(cells)
    )
    laplace = bf.Laplace(
        bf.policies.AddRemove(domain), bf.workloads.Identity(domain), epsilon=1
    )
    return laplace.release(np.arange(cells), rng=1)


@pytest.mark.usefixtures("close")
def test_a_histogram_shows_estimate_interval_and_reference():
    release = line_release(edges=True)
    axes = bf.plotting.histogram(release, reference=np.arange(20))
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["estimate", "noise interval, 95%", "reference"]
    assert axes.get_xlabel() == "age"
    assert axes.get_ylabel() == "records"
    drawn = axes.patches[0].get_data()
    assert (drawn.values == release.estimate).all()
    assert "seeded" in axes.get_title()


@pytest.mark.usefixtures("close")
def test_large_domains_are_drawn_as_ranges():
    axes = bf.plotting.histogram(line_release(4096))
    assert axes.patches[0].get_data().values.size == 1024
    assert axes.get_ylabel() == "records per range"
    assert axes.get_xlabel() == "cell"


@pytest.mark.usefixtures("close")
def test_a_map_shows_the_estimate_on_a_logarithmic_scale():
    grid = bf.Domain((6, 9), names=("north", "east"))
    laplace = bf.Laplace(bf.policies.Full(grid), bf.workloads.Identity(grid), epsilon=9)
    release = laplace.release(np.ones((6, 9)), rng=1)
    axes = bf.plotting.grid_map(release)
    shown = axes.images[0].get_array()
    np.testing.assert_allclose(shown, np.log1p(np.maximum(release.estimate, 0)))
    assert axes.get_ylabel() == "north"
    assert axes.get_xlabel() == "east"


@pytest.mark.usefixtures("close")
def test_wrong_dimensions_are_refused():
    grid = bf.Domain((2, 2))
    laplace = bf.Laplace(bf.policies.Full(grid), bf.workloads.Identity(grid), epsilon=9)
    with pytest.raises(InputError, match="one attribute"):
        bf.plotting.histogram(laplace.release([[1, 2], [3, 4]]))
    with pytest.raises(InputError, match="two attributes"):
        bf.plotting.grid_map(line_release())


def test_a_missing_extra_is_named():
    from blowfish_fast._optional import require

    with pytest.raises(MissingExtraError, match=r"blowfish_fast\[plot\]"):
        require("no_such_module", extra="plot", purpose="Drawing")
