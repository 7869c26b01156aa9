"""Workloads: exact answers, and their queries laid over buckets."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from blowfish_fast import Domain, kernels, workloads
from blowfish_fast.data.buckets import Buckets

from .common import Call, Timed, counts, grid, ranges, rectangles, sizes


def _on_a_line(kind: str, domain: Domain) -> workloads.Workload:
    if kind == "ranges":
        return ranges(domain)
    if kind == "prefixes":
        return workloads.Prefixes(domain)
    if kind == "identity":
        return workloads.Identity(domain)
    raise ValueError(f"no workload of kind {kind!r}")


class LineAnswers(Timed):
    params: ClassVar[list[Any]] = [sizes(), ["ranges", "prefixes", "identity"]]

    def prepare(self, cells: int, workload: str) -> Call:
        asked = _on_a_line(workload, Domain(cells))
        x = counts("dense", cells)
        return lambda: asked.answer(x)


class RectangleAnswers(Timed):
    params: ClassVar[list[Any]] = [sizes(), [False, True]]

    def prepare(self, cells: int, cut: bool) -> Call:
        domain, data = grid(cells)
        asked = rectangles(domain)
        if cut:
            asked = workloads.Rectangles(domain, asked.starts + 0.25, asked.ends - 0.25)
        x = data.counts
        return lambda: asked.answer(x)


class LinearAnswers(Timed):
    def prepare(self, cells: int) -> Call:
        from scipy import sparse

        generator = np.random.default_rng(1)
        rows = np.repeat(np.arange(500), 20)
        columns = generator.integers(0, cells, size=rows.size)
        matrix = sparse.csr_array(
            (generator.normal(size=rows.size), (rows, columns)), shape=(500, cells)
        )
        asked = workloads.Linear(Domain(cells), matrix)
        x = counts("dense", cells)
        return lambda: asked.answer(x)


class RangesOverBuckets(Timed):
    def prepare(self, cells: int) -> Call:
        asked = ranges(Domain(cells))
        buckets = Buckets(np.arange(0, cells + 1, 16))
        return lambda: asked.form(buckets)


class RectanglesOverBuckets(Timed):
    def prepare(self, cells: int) -> Call:
        domain, _ = grid(cells)
        asked = rectangles(domain)
        order = kernels.hilbert_order(domain.shape)
        buckets = Buckets(np.arange(0, cells + 1, 16), order, curve=True)
        return lambda: asked.form(buckets)
