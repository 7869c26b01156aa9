"""Releases, seeded, that the tests of pictures draw."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf

pytest.importorskip("matplotlib")


@pytest.fixture
def texts():
    """Return every text that a picture would show."""

    def found(axes):
        from matplotlib.text import Text

        axes.figure.canvas.draw()
        return [
            one.get_text()
            for one in axes.figure.findobj(Text)
            if one.get_visible() and one.get_text().strip()
        ]

    return found


@pytest.fixture
def legend():
    """Return the entries of a legend."""

    def found(axes):
        return [one.get_text() for one in axes.get_legend().get_texts()]

    return found


@pytest.fixture
def plain():
    """Return a release of a domain with noise on every cell."""

    def drawn(domain, counts=None, *, epsilon=1, rng=1):
        mechanism = bf.Laplace(
            bf.policies.AddRemove(domain),
            bf.workloads.Identity(domain),
            epsilon=epsilon,
        )
        if counts is None:
            counts = np.arange(domain.size).reshape(domain.shape) % 50
        return mechanism.release(counts, rng=rng)

    return drawn
