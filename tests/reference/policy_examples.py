"""Small policies and workloads of every kind, for Hypothesis."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from blowfish_fast import Domain, policies, workloads

SHAPES = [(2, 3), (3, 3), (2, 2, 2), (1, 5), (4, 2), (3, 1, 2)]
THETAS = [1, 2, 3, 2.3, 2**0.5, 3**0.5, 5**0.5]


def edge_lists(cells):
    nodes = st.integers(-1, cells - 1)
    pairs = st.tuples(nodes, nodes).filter(lambda pair: pair[0] != pair[1])
    return st.lists(pairs, max_size=10 if cells > 1 else 1)


def block_labels(cells):
    return st.lists(st.integers(0, 3), min_size=cells, max_size=cells)


@st.composite
def furthest_cells(draw, cells):
    hops = draw(st.lists(st.integers(0, cells), min_size=cells, max_size=cells))
    far = np.minimum(np.arange(cells) + hops, cells - 1)
    return np.maximum.accumulate(far)


@st.composite
def on_a_line(draw, cells=None, bottom=True):
    """Return a policy over one ordered attribute."""
    domain = Domain(draw(st.integers(1, 9)) if cells is None else cells)
    cells = domain.size
    kinds = ["full", "line", "threshold", "attribute", "blocks", "runs", "band"]
    kind = draw(st.sampled_from([*kinds, *(["add_remove", "graph"] if bottom else [])]))
    if kind == "threshold":
        return policies.Threshold(domain, draw(st.integers(1, cells + 1)))
    if kind == "blocks":
        return policies.Blocks(domain, draw(block_labels(cells)))
    if kind == "runs":
        return policies.Blocks(domain, sorted(draw(block_labels(cells))))
    if kind == "band":
        return policies.Band(domain, draw(furthest_cells(cells)))
    if kind == "graph":
        return policies.Graph(domain, draw(edge_lists(cells)))
    return policies.POLICIES[kind](domain)


@st.composite
def by_value(draw):
    """Return a threshold in value units over uneven cells."""
    widths = draw(st.lists(st.sampled_from([0.1, 0.25, 0.5, 1.0, 2.0]), min_size=1))
    domain = Domain.from_edges(np.concatenate([[0.0], np.cumsum(widths[:8])]))
    theta = draw(st.sampled_from([0.1, 0.3, 1.0, 2.5]))
    return policies.Threshold(domain, theta, unit="value")


@st.composite
def on_a_grid(draw):
    """Return a policy over several attributes."""
    domain = Domain(draw(st.sampled_from(SHAPES)))
    kind = draw(
        st.sampled_from(
            [
                "threshold",
                "attribute",
                "full",
                "add_remove",
                "blocks",
                "graph",
                "product",
            ]
        )
    )
    if kind == "threshold":
        metric = draw(st.sampled_from(["l1", "l2", "linf"]))
        return policies.Threshold(domain, draw(st.sampled_from(THETAS)), metric=metric)
    if kind == "blocks":
        return policies.Blocks(domain, draw(block_labels(domain.size)))
    if kind == "graph":
        return policies.Graph(domain, draw(edge_lists(domain.size)))
    if kind == "product":
        sides = domain.shape
        return policies.Product(
            *(draw(on_a_line(side, bottom=False)) for side in sides)
        )
    return policies.POLICIES[kind](domain)


def any_policy():
    return st.one_of(on_a_line(), on_a_line(), by_value(), on_a_grid(), on_a_grid())


@st.composite
def bins_over(draw, domain):
    """Return labels of bins: any, contiguous, one per cell, or along one axis."""
    cells, kind = domain.size, draw(st.sampled_from(["any", "runs", "single", "axis"]))
    if kind == "single":
        return np.array(draw(st.permutations(range(cells))))
    if kind == "axis":
        axis = draw(st.integers(0, domain.ndim - 1))
        along = draw(block_labels(domain.shape[axis]))
        shape = [side if j == axis else 1 for j, side in enumerate(domain.shape)]
        labels = np.broadcast_to(np.reshape(along, shape), domain.shape).reshape(-1)
    else:
        labels = draw(block_labels(cells))
        labels = sorted(labels) if kind == "runs" else labels
    return np.unique(labels, return_inverse=True)[1]


@st.composite
def rectangles_over(draw, domain):
    """Return one to four rectangles, of whole cells or not."""
    parts = draw(st.sampled_from([(0.0,), (0.0, 0.25, 0.4)]))
    lows, highs = [], []
    for _ in range(draw(st.integers(1, 4))):
        sides = []
        for side in domain.shape:
            pair = sorted(draw(st.tuples(*[st.integers(0, side - 1)] * 2)))
            low = pair[0] + draw(st.sampled_from(parts))
            sides.append((low, pair[1] + 1 - draw(st.sampled_from(parts))))
        lows.append([low for low, _ in sides])
        highs.append([high for _, high in sides])
    return workloads.Rectangles(domain, lows, highs)


@st.composite
def any_workload(draw, domain):
    """Return a workload of any kind that fits the domain."""
    cells = domain.size
    kinds = ["identity", "total", "sum", "linear", "marginals", "rectangles"]
    if domain.ndim == 1:
        kinds += ["prefixes", "all_ranges", "ranges"]
    kind = draw(st.sampled_from(kinds))
    coefficients = st.sampled_from([0.0, 0.0, 1.0, -2.0, 0.1])
    row = st.lists(coefficients, min_size=cells, max_size=cells)
    if kind == "identity":
        return workloads.Identity(domain)
    if kind == "total":
        return workloads.Total(domain)
    if kind == "sum":
        return workloads.Sum(domain, draw(row))
    if kind == "linear":
        return workloads.Linear(domain, draw(st.lists(row, min_size=1, max_size=4)))
    if kind == "marginals":
        axes = st.sets(st.integers(0, domain.ndim - 1), min_size=1)
        return workloads.Marginals(domain, draw(axes))
    if kind == "rectangles":
        return draw(rectangles_over(domain))
    if kind == "prefixes":
        return workloads.Prefixes(domain)
    if kind == "all_ranges":
        return workloads.AllRanges(domain)
    cell = st.integers(0, cells - 1)
    pairs = draw(st.lists(st.tuples(cell, cell), min_size=1, max_size=7))
    starts = [min(pair) for pair in pairs]
    return workloads.Ranges(domain, starts, [max(pair) + 1 for pair in pairs])
