"""Least squares over tables by dense matrices, and worst edges by listing them."""

from __future__ import annotations

import itertools

import numpy as np


def cells_of(sizes):
    return list(itertools.product(*(range(size) for size in sizes)))


def table_matrix(sizes, table):
    """Return the 0/1 matrix from all cells to those of one table."""
    rows = {cell: at for at, cell in enumerate(cells_of([sizes[i] for i in table]))}
    every = cells_of(sizes)
    matrix = np.zeros((len(rows), len(every)))
    for column, cell in enumerate(every):
        matrix[rows[tuple(cell[i] for i in table)], column] = 1.0
    return matrix


def dense_fit(sizes, tables, variances, values):
    """Return the estimate of all cells and its covariance, by the pseudo-inverse."""
    stacked = np.concatenate(
        [
            table_matrix(sizes, one) / np.sqrt(v)
            for one, v in zip(tables, variances, strict=True)
        ]
    )
    right = np.concatenate(
        [np.reshape(y, -1) / np.sqrt(v) for y, v in zip(values, variances, strict=True)]
    )
    inverse = np.linalg.pinv(stacked.T @ stacked)
    return inverse @ stacked.T @ right, inverse


def noise_coefficients(sizes, tables, variances):
    """Return how each draw enters each cell's estimate: a column per measured cell."""
    stacked = [table_matrix(sizes, one) for one in tables]
    nothing = [np.zeros(len(one)) for one in stacked]
    inverse = dense_fit(sizes, tables, variances, nothing)[1]
    pairs = zip(stacked, variances, strict=True)
    return inverse @ np.concatenate([one / v for one, v in pairs]).T


def worst_edge(policy, sizes, tables, weights):
    """Return the heaviest edge of a policy over the listed domain, edge by edge."""
    rows = np.concatenate(
        [w * table_matrix(sizes, one) for one, w in zip(tables, weights, strict=True)]
    )
    heaviest = 0.0
    for chunk in policy.edges():
        for one, two in chunk:
            moved = rows[:, one] - (rows[:, two] if two >= 0 else 0.0)
            heaviest = max(heaviest, float(np.abs(moved).sum()))
    return heaviest
