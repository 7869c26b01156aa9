"""Seeded releases in rho draw the noise that they drew before, bit for bit."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.audit.witness import Draw, watch

LINE, MAP = bf.Domain(64), bf.Domain((8, 8))
FAR = bf.policies.Threshold(LINE, theta=8)
ALL = bf.policies.Full(LINE)
RANGES = bf.workloads.Ranges.random(LINE, 20, rng=1)
RECTANGLES = bf.workloads.Rectangles.random(MAP, 20, rng=1)

RECIPES = {
    "gaussian": (bf.Gaussian, ALL, RANGES),
    "ordered": (bf.Ordered, FAR, RANGES),
    "ordered_hierarchical": (bf.mechanisms.OrderedHierarchical, FAR, RANGES),
    "dawa": (bf.Dawa, ALL, RANGES),
    "privelet": (bf.mechanisms.Privelet, ALL, RANGES),
    "quad_tree": (bf.mechanisms.QuadTree, bf.policies.AddRemove(MAP), RECTANGLES),
}
# At a rho of 20 all sigmas are small, and drawn by inversion.
DIGESTS = {
    ("gaussian", "0.01"): "ed53ecfea4ea37a0",
    ("gaussian", "20"): "076a27c79e5ace2a",
    ("ordered", "0.01"): "a466e802b7212ca9",
    ("ordered", "20"): "bf233828f61709b0",
    ("ordered_hierarchical", "0.01"): "631649727e6c9618",
    ("ordered_hierarchical", "20"): "64dfc059cf7eab8e",
    ("dawa", "20"): "75aec22060d142b5",
    ("privelet", "0.01"): "89d2cd3715bc41ac",
    ("privelet", "20"): "1d9fb75c93afe2d0",
    ("quad_tree", "0.01"): "7e741bc1a973b0b5",
    ("quad_tree", "20"): "3893c122a235d76a",
}


def drawn_bits(name, rho):
    """Return a digest of all noise of a seeded release, and the laws it was from."""
    recipe, policy, asked = RECIPES[name]
    counts = np.arange(64).reshape(policy.domain.shape) % 23
    seen = watch(recipe(policy, asked, rho=rho), counts, seed=17)
    draws = [one for one in seen.diary if isinstance(one, Draw)]
    bits = hashlib.sha256()
    for one in draws:
        bits.update(one.values.astype("<i8").tobytes())
    return bits.hexdigest()[:16], {one.law for one in draws}


@pytest.mark.parametrize(("name", "rho"), DIGESTS, ids="-".join)
def test_seeded_noise_in_rho_keeps_its_bits(name, rho):
    bits, laws = drawn_bits(name, rho)
    assert bits == DIGESTS[name, rho]
    assert "gaussian" in laws
