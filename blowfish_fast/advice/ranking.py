"""Mechanisms ranked by error, with the reasons: what `recommend` returns."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

from blowfish_fast._support.optional import require
from blowfish_fast._support.typing import IntArray
from blowfish_fast.advice.side_by_side import (
    RankedBest,
    compare_noise_with_counts,
    currency_sentence,
)
from blowfish_fast.errors import InputError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.mechanisms.base import Mechanism

from .private_choice import ChosenPrivately

CLOSE = 1.05
"""Gaussian noise goes first where it is better by more than this."""

LEAST_ERROR = 1e-9
LONGEST_REASON = 160


class Advice(NamedTuple):
    """One line of a recommendation.

    Attributes
    ----------
    name : str
        A strategy of `Transformed`, "queries", or a registered mechanism.
    kind : {"predicted", "typical", "refused"}
        Exact for any data; measured on generated data; or not to be had.
    error : float
        Root of the mean squared error per query, in records; over the shapes, the
        geometric mean.
    by_shape : dict
        The error on each generated histogram; empty unless typical.
    mechanism : Mechanism or None
        Ready to release.
    reason : str
        Why there is no error; empty where there is one.
    """

    name: str
    kind: str
    error: float
    by_shape: dict[str, float]
    mechanism: Mechanism | None
    reason: str


class Recommendation:
    """Mechanisms by error, best first; ``str()`` gives a table and the reasons.

    Attributes
    ----------
    advice : tuple of Advice
        Those without an error last.
    because : tuple of str
        Plain sentences.
    shapes : dict
        The generated histograms.
    """

    def __init__(
        self,
        advice: list[Advice],
        shapes: dict[str, IntArray],
        heading: str,
        delta: Fraction | None = None,
    ) -> None:
        self.advice = tuple(sorted(advice, key=_order))
        self.shapes = shapes
        self.heading = heading
        self.because = (*_reasons(self), *_currencies(self, delta))

    @property
    def best(self) -> Advice:
        """The mechanism of least error."""
        return self.advice[0]

    @property
    def best_predicted(self) -> Advice | None:
        """The mechanism of least error that holds for any data."""
        return next((one for one in self.advice if one.kind == "predicted"), None)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The lines as plain data, for tables and JSON."""
        return [
            {
                "name": one.name,
                "kind": one.kind,
                "error": one.error if math.isfinite(one.error) else None,
                "by_shape": one.by_shape,
                "reason": one.reason,
            }
            for one in self.advice
        ]

    def best_on(self, shape: str) -> Advice:
        """Return the mechanism of least error on one generated histogram."""
        return min(
            (one for one in self.advice if one.mechanism is not None),
            key=lambda one: one.by_shape.get(shape, one.error),
        )

    def choose_privately(self, *, share: Any) -> ChosenPrivately:
        """Return a mechanism that spends `share` of epsilon on choosing by the data.

        It looks, privately, which generated histogram the data resembles, and uses
        what is best there. Worth its price only where the best differ much.
        """
        best = self.best.mechanism
        if best is None:
            raise InputError("no mechanism can be used, so there is none to choose")
        candidates = {
            name: self.best_on(name).mechanism or best for name in self.shapes
        }
        return ChosenPrivately(
            best.policy,
            best.workload,
            epsilon=best.budget,
            shapes=self.shapes,
            candidates=candidates,
            share=share,
        )

    def __iter__(self) -> Iterator[Advice]:
        return iter(self.advice)

    def __len__(self) -> int:
        return len(self.advice)

    def __getitem__(self, name: str) -> Advice:
        for one in self.advice:
            if one.name == name:
                return one
        raise KeyError(name)

    def __str__(self) -> str:
        width = max(len("mechanism"), *(len(one.name) for one in self.advice))
        lines = [self.heading, f"{'mechanism':{width}}   {'error':>12}   how known"]
        for one in self.advice:
            if one.kind != "refused":
                lines.append(
                    f"{one.name:{width}}   {one.error:12,.4g}   {one.kind}"
                    + _shapes_text(one.by_shape)
                )
        for one in self.advice:
            if one.kind == "refused":
                lines.append(f"{one.name:{width}}   not admitted: {one.reason}")
        return "\n".join([*lines, "", *self.because])

    def to_dict(self) -> dict[str, Any]:
        """Return heading, rows and reasons as plain data, for JSON."""
        return {"heading": self.heading, "rows": self.rows, "because": [*self.because]}

    def to_pandas(self) -> Any:
        """Return `rows` as a pandas data frame."""
        pandas = require("pandas", extra="frames", purpose="a pandas data frame")
        return pandas.DataFrame(self.rows)

    def __repr__(self) -> str:
        return f"Recommendation({len(self)} mechanisms, best: {self.best.name})"

    def _repr_html_(self) -> str:
        from blowfish_fast._support.html import panel, table

        lines = [
            (one.name, f"{one.error:,.4g}", one.kind + _shapes_text(one.by_shape))
            if one.kind != "refused"
            else (one.name, "", f"not admitted: {one.reason}")
            for one in self.advice
        ]
        drawing = table(("mechanism", "error", "how known"), lines)
        return panel(self.heading, sentence=" ".join(self.because), drawing=drawing)


def _order(one: Advice) -> float:
    """Sort by error; Laplace noise goes first where they are close."""
    error = float(f"{one.error:.6e}")
    gaussian = one.mechanism is not None and one.mechanism.budget.power == 2
    return error * CLOSE if gaussian else error


def _currencies(one: Recommendation, delta: Fraction | None) -> Iterator[str]:
    """Say which noise is better here, and where the other one would be."""
    best: dict[int, tuple[Advice, Budget]] = {}
    for each in one.advice:
        if each.mechanism is not None:
            best.setdefault(each.mechanism.budget.power, (each, each.mechanism.budget))
    if delta is None or len(best) < 2:
        return
    first, second = (
        RankedBest(each.name, max(each.error, LEAST_ERROR), budget)
        for each, budget in (best[1], best[2])
    )
    yield currency_sentence(first, second, delta)


def _reasons(one: Recommendation) -> Iterator[str]:
    """Say in plain words what stands behind the order."""
    best = one.best
    if best.mechanism is None:
        yield "No mechanism can be used here."
        return
    cells = best.mechanism.domain.size
    records = sum(int(each.sum()) for each in list(one.shapes.values())[:1])
    if best.kind == "predicted":
        yield (
            f"{best.name} is off by {best.error:,.4g} records per query (root mean "
            "square): exact for the noise that would be drawn, whatever the data."
        )
    else:
        hardest = max(best.by_shape, key=lambda shape: best.by_shape[shape])
        yield (
            f"{best.name} is typically off by {best.error:,.4g} records per query "
            f"(root mean square): the geometric mean over {len(one.shapes)} generated "
            f"histograms of {cells:,} cells and {records:,} records, from "
            f"{min(best.by_shape.values()):,.4g} to {best.by_shape[hardest]:,.4g} (on "
            f"{hardest!r}). It depends on the data, so yours may differ."
        )
    certain = one.best_predicted
    if best.kind == "typical" and certain is not None:
        loses = [
            shape for shape, error in best.by_shape.items() if error > certain.error
        ]
        times = certain.error / max(best.error, LEAST_ERROR)
        yield (
            f"Of those whose error holds for any data, {certain.name} is best: "
            f"{certain.error:,.4g}, {times:,.3g} times as much"
            + (f"; it is better on {', '.join(loses)}." if loses else ".")
        )
    if not one.shapes:
        yield (
            "Mechanisms that adapt to the data were not tried: state a rough number of "
            "records."
        )
        return
    yield from compare_noise_with_counts(best.mechanism, cells, records)
    usual = best.name
    others = {
        shape: one.best_on(shape).name
        for shape in one.shapes
        if one.best_on(shape).name != usual
    }
    if others:
        listed = ", ".join(f"{name} on {shape!r}" for shape, name in others.items())
        yield (
            f"Other data would call for others: {listed}. "
            "`choose_privately(share=...)` spends that share of epsilon on finding out "
            "which."
        )
    else:
        yield (
            f"{usual} is best on each of the generated histograms: choosing by the "
            "data would gain nothing."
        )


def _shapes_text(by_shape: dict[str, float]) -> str:
    if not by_shape:
        return ""
    return ": " + ", ".join(f"{name} {error:,.3g}" for name, error in by_shape.items())


def shorten_reason(reason: str) -> str:
    """Return the first words of a reason, on one line."""
    text = " ".join(reason.split())
    if len(text) <= LONGEST_REASON:
        return text
    return text[:LONGEST_REASON].rsplit(" ", 1)[0] + " ..."
