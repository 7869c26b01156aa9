"""Cosine and sine rows as a dense matrix of whole numbers, from the definition."""

from __future__ import annotations

import mpmath
import numpy as np

from blowfish_fast.kernels.transform.fourier_rows import STEP_BITS


def _rounded(value):
    return int(mpmath.nint(value * 2**STEP_BITS))


def waves(cells, frequencies):
    """Return rows cos 1, sin 1, cos 2, ... in steps of 2^-14, at 100 digits."""
    rows = []
    with mpmath.workdps(100):
        for frequency in range(1, frequencies + 1):
            angles = [
                2 * mpmath.pi * (frequency * cell % cells) / cells
                for cell in range(cells)
            ]
            rows.append([_rounded(mpmath.cos(angle)) for angle in angles])
            rows.append([_rounded(mpmath.sin(angle)) for angle in angles])
    return np.array(rows, dtype=np.int64).reshape(2 * frequencies, cells)


def spectrum_norms(counts):
    """Return the L2 norm of all frequencies above i, for i = 0, 1, ..., exactly."""
    cells = len(counts)
    with mpmath.workdps(60):
        energies = []
        for frequency in range(cells // 2 + 1):
            total = mpmath.mpc(0)
            for cell, count in enumerate(counts):
                turn = mpmath.mpf(2 * (frequency * cell % cells)) / cells
                total += int(count) * mpmath.expjpi(-turn)
            twice = 1 if frequency == 0 or 2 * frequency == cells else 2
            energies.append(twice * abs(total) ** 2 / cells)
        return [
            float(mpmath.sqrt(mpmath.fsum(energies[i + 1 :])))
            for i in range(len(energies))
        ]
