"""Cells from noisy running totals on every scale, one window at a time.

The prior is fitted to differences in the middle of their bins, eight per doubling.
"""

from __future__ import annotations

import numpy as np

WIDTHS = np.append(0.0, 6.0 * 4.0 ** (np.arange(20) - 4))


def multiscale_cells(totals, known, variance, rounds=40):
    cells = len(totals)
    unit = variance**0.5

    def value(place):
        if place <= 0:
            return 0.0
        return totals[min(place, cells) - 1] / unit

    def noisy(place):
        return int(0 < place < cells and not known[place - 1])

    half = 1
    while half < cells:
        half *= 2
    # Windows that hold the whole line have its total.
    larger = {start: value(cells) for start in range(cells - 2 * half, 1)}
    while half >= 1:
        windows = range(-2 * half + 1, cells)
        turns = {
            start: 2 * value(start + half) - value(start) - value(start + 2 * half)
            for start in windows
        }
        kinds = {
            start: 4 * noisy(start + half) + noisy(start) + noisy(start + 2 * half)
            for start in windows
        }
        weights = _prior(turns, kinds, rounds)
        parts = {}
        for start, total in larger.items():
            if start not in turns:
                continue
            turn = _posterior_mean(turns[start], kinds[start], weights)
            parts.setdefault(start, []).append((total + turn) / 2)
            parts.setdefault(start + half, []).append((total - turn) / 2)
        larger = {
            start: np.mean(said)
            for start, said in parts.items()
            if -half < start < cells
        }
        half //= 2
    return np.array([larger[cell] for cell in range(cells)]) * unit


def _likelihoods(turn, kind):
    spread = kind + WIDTHS
    logs = -0.5 * (turn**2 / spread + np.log(spread))
    return np.exp(logs - logs.max())


def _prior(turns, kinds, rounds):
    rows = np.array(
        [
            _likelihoods(_middle(turns[start]), kinds[start])
            for start in turns
            if kinds[start]
        ]
    )
    weights = np.full(WIDTHS.size, 1.0 / WIDTHS.size)
    for _ in range(rounds if rows.size else 0):
        shares = rows * weights
        shares /= shares.sum(axis=1, keepdims=True)
        weights = np.maximum(shares.mean(axis=0), 1e-12)
    return weights


def _posterior_mean(turn, kind, weights):
    if kind == 0:
        return turn
    shares = _likelihoods(turn, kind) * weights
    return turn * (shares * WIDTHS / (WIDTHS + kind)).sum() / shares.sum()


def _middle(turn):
    size, smallest = abs(turn), 2.0**-8
    if size < smallest * 1.125:
        return smallest * 1.125 / 2
    power = 2.0 ** np.floor(np.log2(size))
    eighth = np.floor((size / power - 1) * 8)
    return power * (1 + (eighth + 0.5) / 8)
