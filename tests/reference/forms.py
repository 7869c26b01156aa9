"""Forms of workloads written out as matrices."""

from __future__ import annotations

import numpy as np

from blowfish_fast.workloads import Fractions


def dense_form(form, buckets):
    """Return the (queries, buckets) matrix of an explicit form."""
    if isinstance(form, Fractions):
        matrix = np.zeros((form.first.size, buckets))
        for row in range(form.first.size):
            first, last = form.first[row], form.last[row]
            matrix[row, first + 1 : last] = 1.0
            if first != last:
                matrix[row, last] = form.last_fraction[row]
            matrix[row, first] = form.first_fraction[row]
        return matrix
    matrix = np.zeros((form.pointers.size - 1, buckets))
    for row in range(form.pointers.size - 1):
        for piece in range(form.pointers[row], form.pointers[row + 1]):
            matrix[row, form.starts[piece] : form.ends[piece]] += form.values[piece]
    return matrix


def dense_workload(workload):
    """Return the (queries, cells) matrix of a workload, from its answers."""
    cells = workload.domain.size
    rows = np.eye(cells).reshape(cells, *workload.domain.shape)
    return np.stack([workload.answer(row) for row in rows], axis=1)


def dense_projection(workload, buckets):
    """Return the queries over buckets: each bucket's cells share it evenly."""
    spread = np.stack([buckets.expand(row) for row in np.eye(buckets.count)], axis=1)
    return dense_workload(workload) @ spread
