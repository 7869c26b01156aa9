"""Half-widths of certified intervals beside those of the noise, on given histograms.

    python -m experiments widths --data FOLDER

The whole epsilon is the same in every column: a certified release has what its
certificate leaves over. Each entry is the mean half-width, and the share of true
answers inside.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import blowfish_fast as bf
from blowfish_fast._support.typing import IntArray
from blowfish_fast.errors import InputError, NoiseOnlyWarning
from blowfish_fast.mechanisms.certifier import Certifier
from blowfish_fast.release.certificates import Kind

EPSILONS = (0.1, 1.0)
RANGES, RECTANGLES = 2000, 1000
Drawn = Callable[[int], bf.Release]


def width_report(data: Path | None, trials: int = 3) -> Iterator[str]:
    """Yield a line for every histogram in `data` and every epsilon."""
    if data is None:
        raise InputError(
            "widths are measured on given histograms",
            way_out="name a folder with 1d/*.npy and 2d/*.npy: --data FOLDER",
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoiseOnlyWarning)
        for epsilon in EPSILONS:
            for file in sorted(data.glob("1d/*.npy")):
                found = _along_a_line(np.load(file).astype(np.int64), epsilon, trials)
                yield f"{file.stem}, epsilon {epsilon}: {found}"
            for file in sorted(data.glob("2d/*.npy")):
                found = _on_a_map(np.load(file).astype(np.int64), epsilon, trials)
                yield f"map {file.stem}, epsilon {epsilon}: {found}"


def _along_a_line(counts: IntArray, epsilon: float, trials: int) -> str:
    line = bf.Domain(counts.size)
    ranges = bf.workloads.Ranges.random(line, RANGES, rng=1)
    cells = bf.workloads.Identity(line)
    tree: Any = {"partition": None}
    return ", ".join(
        (
            f"ranges: noise {_noise(counts, ranges, epsilon, trials)}",
            f"quantile {_certified(counts, ranges, epsilon, 0.25, 'quantile', trials)}",
            f"shape {_certified(counts, ranges, epsilon, 0.25, 'shape', trials)}",
            f"without buckets {_noise(counts, ranges, epsilon, 1, **tree)}",
            f"cells: noise {_noise(counts, cells, epsilon, trials)}",
            f"curve {_certified(counts, cells, epsilon, 0.1, 'curve', trials)}",
        )
    )


def _on_a_map(counts: IntArray, epsilon: float, trials: int) -> str:
    grid = bf.Domain(counts.shape)
    boxes = bf.workloads.Rectangles.random(grid, RECTANGLES, rng=1)
    cells = bf.workloads.Identity(grid)
    return ", ".join(
        (
            f"rectangles: noise {_noise(counts, boxes, epsilon, trials)}",
            f"quantile {_certified(counts, boxes, epsilon, 0.1, 'quantile', trials)}",
            f"cells: noise {_noise(counts, cells, epsilon, trials)}",
            f"curve {_certified(counts, cells, epsilon, 0.05, 'curve', trials)}",
        )
    )


def _noise(
    counts: IntArray, asked: Any, epsilon: float, trials: int, **options: Any
) -> str:
    policy = bf.policies.AddRemove(asked.domain)
    mechanism = bf.Dawa(policy, asked, epsilon=epsilon, **options)
    return _means(
        counts, asked, "noise", lambda at: mechanism.release(counts, rng=at), trials
    )


def _certified(
    counts: IntArray, asked: Any, epsilon: float, share: float, kind: Kind, trials: int
) -> str:
    policy = bf.policies.AddRemove(asked.domain)
    mechanism = bf.Dawa(policy, asked, epsilon=epsilon * (1 - share))

    def drawn(at: int) -> bf.Release:
        release = mechanism.release(counts, rng=at)
        certifier = Certifier(release, asked, epsilon=epsilon * share, kind=kind)
        certificate: Any = certifier.release(counts, rng=1000 + at)
        certified: bf.Release = release.certified(certificate)
        return certified

    return _means(counts, asked, "truth", drawn, trials)


def _means(counts: IntArray, asked: Any, of: Any, drawn: Drawn, trials: int) -> str:
    true = np.asarray(asked.answer(counts))
    widths, shares = [], []
    for at in range(trials):
        low, high = drawn(at).intervals(asked, of=of).T
        widths.append((high - low).mean() / 2)
        shares.append(((true >= low - 1e-9) & (true <= high + 1e-9)).mean())
    return f"{np.mean(widths):.3g} / {np.mean(shares):.3f}"
