"""What the noisy rows of a session say about a new question: least squares, free.

    asked      women: 51.2      everybody: 98.0      both with noise
    new        men              everybody - women = 46.8, from two draws

Rows are those of single questions. A new question is answered where it is a weighted
sum of rows that were asked; of all such sums the one of least variance is taken. Lemma
PA7, ``docs/proofs/past_answers.md``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from blowfish_fast._support.typing import FloatArray
from blowfish_fast.measure.noise import Scales, Spread
from blowfish_fast.measure.tails import noise_half_widths

MOST_ATOMS = 2000
"""Sets of cells that no row tells apart, at most: the factor is dense."""
MOST_ROWS = 4000
"""Rows that are solved for, at most."""
EXACT_SHARE = 1e-5
"""A row without noise counts as one of so much of the least standard deviation."""
NOT_DETERMINED = 1e-6
"""What may be left of a question, for rounding, if rows determine it."""


class NoisyRows(NamedTuple):
    """Rows that one question measured; all public.

    Attributes
    ----------
    matrix : sparse array, shape (rows, cells)
        Their coefficients.
    noisy : (rows,) float64
        Their noisy values.
    scales : Scales
        Their noise.
    """

    matrix: Any
    noisy: FloatArray
    scales: Scales


class LeastSquares(NamedTuple):
    """Answers as weighted sums of noisy rows.

    Attributes
    ----------
    values : (queries,) float64
        The answers.
    spread : Spread
        The law of their errors.
    """

    values: FloatArray
    spread: Spread

    def intervals(self, confidence: float) -> FloatArray:
        """Return intervals that hold the truth of each query by itself: Lemma PA7."""
        half = noise_half_widths(self.spread, 1.0 - confidence)
        return np.stack([self.values - half, self.values + half], axis=-1)


def least_squares(asked: list[NoisyRows], queries: Any) -> LeastSquares | None:
    """Return what rows say about queries; None where they do not determine them.

    Parameters
    ----------
    asked : list of NoisyRows
        Rows of one kind of noise, Laplace or Gaussian, each drawn once.
    queries : sparse array, shape (queries, cells)
        The coefficients of the new questions.

    Returns
    -------
    LeastSquares or None
        None as well where there are too many rows, or too many sets of cells that
        some row tells apart.
    """
    from scipy import sparse

    rows = sparse.vstack([question.matrix for question in asked]).tocsr()
    if rows.shape[0] > MOST_ROWS:
        return None
    atoms = _atoms(sparse.vstack([rows, queries]))
    if atoms is None:
        return None
    table = rows.tocsc()[:, atoms].toarray()
    wanted = queries.tocsc()[:, atoms].toarray()
    noisy = np.concatenate([question.noisy for question in asked])
    scales = [question.scales for question in asked]
    exact = np.concatenate([part.exact for part in scales])
    widths = np.where(exact, 0.0, np.concatenate([part.widths for part in scales]))
    variances = np.concatenate([part.variances for part in scales])
    variances = np.where(exact, 0.0, variances)
    errors = np.sqrt(variances)
    least = errors[~exact].min(initial=np.inf)
    errors = np.where(exact, EXACT_SHARE * (least if least < np.inf else 1.0), errors)
    # The shares a with table' a = wanted' and the least sum of (a error)^2.
    shares = np.linalg.lstsq((table / errors[:, None]).T, wanted.T, rcond=None)[0]
    shares = shares / errors[:, None]
    left = np.abs(table.T @ shares - wanted.T).max(initial=0.0)
    if left > NOT_DETERMINED:
        return None
    weighed = np.abs(shares) * widths[:, None]
    gaussian = int((~exact).sum()) if scales[0].power == 2 else 0
    spread = Spread(
        variance=(shares**2 * variances[:, None]).sum(axis=0),
        square=(weighed**2).sum(axis=0),
        largest=weighed.max(axis=0),
        steps=(shares**2)[~exact].sum(axis=0),
        width=widths[weighed.argmax(axis=0)],
        least=float(widths[~exact].min(initial=np.inf)) if (~exact).any() else 0.0,
        gaussian_rows=gaussian,
    )
    return LeastSquares(shares.T @ noisy, spread)


def _atoms(rows: Any) -> Any:
    """Return one cell of each set that no row tells apart; None if there are many.

    Cells that no row holds are left out.
    """
    columns = rows.tocsc()
    columns.sort_indices()
    first: dict[bytes, int] = {}
    for cell in np.flatnonzero(np.diff(columns.indptr)).tolist():
        held = slice(columns.indptr[cell], columns.indptr[cell + 1])
        key = columns.indices[held].tobytes() + columns.data[held].tobytes()
        first.setdefault(key, cell)
        if len(first) > MOST_ATOMS:
            return None
    return list(first.values())
