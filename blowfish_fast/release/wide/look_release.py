"""What a first look at a table publishes: a page of pictures, column by column."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Self

import numpy as np

from blowfish_fast._support.typing import FloatArray
from blowfish_fast.data.domain import Attributes, WideDomain
from blowfish_fast.errors import ReleaseFileError
from blowfish_fast.release.file import Release, read_archive, write_archive
from blowfish_fast.release.guarantee import Guarantee
from blowfish_fast.release.release import HistogramRelease
from blowfish_fast.workloads import Identity, Ranges

from .sparse_release import SparseRelease

MEMBER = "look.json"
"""The part of the file that says what it holds."""

KINDS = ("categories", "numbers", "words", "unclear")
"""What a column holds: stated, or as its first noisy counts say."""

PARTS = (0.25, 0.5, 0.75)
"""Which quantiles of a column of numbers are shown."""


class Bar(NamedTuple):
    """A noisy count with its interval.

    Attributes
    ----------
    label : str
        What is counted.
    noisy : float
        The noisy count, at least 0.
    low, high : float
        Ends of the interval.
    """

    label: str
    noisy: float
    low: float
    high: float


class ColumnLook(NamedTuple):
    """What was published of one column.

    Attributes
    ----------
    name : str
        The column.
    kind : {"categories", "numbers", "words", "unclear"}
        What it holds.
    first : HistogramRelease
        Stated categories; of other columns numbers by magnitude, words, missing values.
    second : HistogramRelease, SparseRelease or None
        Numbers in even steps, or the frequent words; None where nothing was asked.
    ordered : bool, default False
        Whether stated categories have an order.
    """

    name: str
    kind: str
    first: HistogramRelease
    second: HistogramRelease | SparseRelease | None
    ordered: bool = False

    @property
    def parts(self) -> list[Release]:
        """Everything that was drawn for this column."""
        return [part for part in (self.first, self.second) if part is not None]

    def missing(self, confidence: float = 0.95) -> Bar:
        """Return how many answers are missing, by the better of two counts.

        Which one that is depends on their noise, not on what they are.
        """
        drawn = self.second if isinstance(self.second, HistogramRelease) else self.first
        return bars(drawn, confidence)[-1]._replace(label="missing")

    def bars(self, confidence: float = 0.95) -> list[Bar]:
        """Return the counts of the picture, without missing and stray answers."""
        if isinstance(self.second, SparseRelease):
            cells = self.second.cells(confidence)
            words = [
                Bar(word, count, low, high)
                for word, count, low, high in zip(
                    *(
                        list(cells[name])
                        for name in (self.name, "count", "low", "high")
                    ),
                    strict=True,
                )
                if word not in (None, "")
            ]
            return sorted(words, key=lambda bar: -bar.noisy)
        if self.kind == "unclear":
            return []
        drawn = self.second or self.first
        (attribute,) = drawn.domain.attributes
        return bars(drawn, confidence)[: attribute.regular]

    def stray(self, confidence: float = 0.95) -> Bar:
        """Return how many answers are in no bar and are not missing.

        Words among numbers, numbers beyond the steps, texts outside the categories; of
        a column of words all texts, rare ones and listed ones.
        """
        words = self.kind == "words"
        drawn = self.first if words else self.second or self.first
        assert isinstance(drawn, HistogramRelease)
        (attribute,) = drawn.domain.attributes
        labels = {"words": "texts in all", "numbers": "beyond the bars, or no number"}
        label = labels.get(self.kind, "other answers")
        return bars(drawn, confidence)[attribute.regular]._replace(label=label)

    def middle(self) -> str | None:
        """Return the median of categories with an order; None for other columns.

        It is the category in which half of the noisy counts are reached, for which
        nothing is promised where neighbours nearly reach it.
        """
        if not self.ordered:
            return None
        listed = self.bars()
        totals = np.cumsum([bar.noisy for bar in listed])
        return listed[int(np.searchsorted(totals, totals[-1] / 2))].label

    def quantiles(self, confidence: float = 0.95) -> dict[float, tuple[float, ...]]:
        """Return quartiles and the median with their intervals; of numbers only.

        They are those of all numbers, also of numbers beyond the steps. How many
        answers lie in no step is measured, and not which of them are numbers, or on
        which side those lie: intervals hold whatever they are (Lemma FL4). An end is
        infinite where the quantile may lie beyond the steps.
        """
        drawn = self.second
        if self.kind != "numbers" or not isinstance(drawn, HistogramRelease):
            return {}
        (attribute,) = drawn.domain.attributes
        edges = np.asarray(attribute.cuts, dtype=np.float64)
        noisy = np.asarray(drawn.estimate, dtype=np.float64)
        totals = np.concatenate([[0.0], np.cumsum(noisy[: attribute.regular])])
        within, everything = totals[-1], totals[-1] + noisy[attribute.regular]
        off = rank_error(drawn, attribute.regular + 1, confidence)
        below, above = self._numbers_beyond(edges, float(everything - within))
        whole = edges[1] - edges[0] == 1
        quantiles: dict[float, tuple[float, ...]] = {}
        for part in PARTS:
            # Ranks inside the steps if all that lies beyond lies below, or above.
            least = within - (1.0 - part) * everything
            most = part * everything
            low, high = _step_ends(totals, edges, (least, most), off)
            rank = part * (below + within + above) - below
            place = _crossing(totals, edges, rank)
            # Steps of 1 hold whole numbers, codes and years, and nothing between them.
            place = float(np.floor(place)) if whole else place
            quantiles[part] = (min(max(place, low), high), low, high)
        return quantiles

    def _numbers_beyond(self, edges: FloatArray, answers: float) -> tuple[float, float]:
        """Return about how many numbers lie below and above the steps.

        The first step has counted words and numbers by magnitude, with more noise; its
        counts divide the answers that lie in no step. Nothing is promised of these two.
        """
        (attribute,) = self.first.domain.attributes
        cuts = np.asarray(attribute.cuts, dtype=np.float64)
        noisy = np.asarray(self.first.estimate, dtype=np.float64)
        numbers = noisy[: attribute.regular]
        sides = (
            max(float(numbers[cuts[1:] <= edges[0]].sum()), 0.0),
            max(float(numbers[cuts[:-1] >= edges[-1]].sum()), 0.0),
        )
        words = max(float(noisy[attribute.regular]), 0.0)
        counted = max(sum(sides) + words, 1e-300)
        return (
            max(answers, 0.0) * sides[0] / counted,
            max(answers, 0.0) * sides[1] / counted,
        )

    def too_noisy(self, confidence: float = 0.95) -> bool:
        """Return whether the largest bar's interval is wider than half its count."""
        listed = self.bars(confidence)
        if not listed:
            return True
        largest = max(listed, key=lambda bar: bar.noisy)
        return largest.high - largest.low > largest.noisy / 2


def bars(release: HistogramRelease, confidence: float = 0.95) -> list[Bar]:
    """Return every cell of a line with its noisy count and interval, cut at 0.

    Parameters
    ----------
    release : HistogramRelease
        A release over one attribute.
    confidence : float, default 0.95
        Confidence of each interval.

    Returns
    -------
    list of Bar
        The cells in their order, those of missing and stray values last.
    """
    (attribute,) = release.domain.attributes
    ends = np.asarray(release.intervals(Identity(release.domain), confidence))
    low, high = np.maximum(np.moveaxis(ends, -1, 0), 0.0)
    noisy = np.clip(np.asarray(release.estimate, dtype=np.float64), low, high)
    labels = [cell_label(attribute, at) for at in range(attribute.regular)]
    labels += attribute.extras
    columns = (labels, noisy.tolist(), low.tolist(), high.tolist())
    return [Bar(*row) for row in zip(*columns, strict=True)]


def cell_label(attribute: Any, cell: int) -> str:
    """Return what a cell is called: its category, its number, or its two ends.

    Parameters
    ----------
    attribute : Axis
        The column.
    cell : int
        The number of the cell.

    Returns
    -------
    str
        Its name.
    """
    if attribute.levels is not None:
        return str(attribute.levels[cell])
    if attribute.cuts is None:
        return str(cell)
    low, high = attribute.cuts[cell], attribute.cuts[cell + 1]
    whole = float(low).is_integer() and high - low == 1
    return f"{low:.10g}" if whole else f"{low:.10g} to {high:.10g}"


def rank_error(release: HistogramRelease, cells: int, confidence: float) -> float:
    """Return a bound that no running total of so many cells exceeds, in all.

    Parameters
    ----------
    release : HistogramRelease
        A release by independent noise of each cell.
    cells : int
        How many cells are added up at most.
    confidence : float
        The probability that it holds.

    Returns
    -------
    float
        Records.
    """
    # The longest one has the widest noise; each gets its part of what may go wrong.
    each = 1 - (1 - confidence) / cells
    longest = Ranges(release.domain, [0], [cells])
    low, high = np.asarray(release.intervals(longest, each)).reshape(2)
    return float(high - low) / 2


def _step_ends(
    totals: FloatArray,
    edges: FloatArray,
    ranks: tuple[float, float],
    off: float,
) -> tuple[float, float]:
    """Return the edges between which a number of one of these ranks lies.

    Noisy running totals are off by at most `off` at once; the smaller rank is off by up
    to two more, and the larger one by one. Where a rank may lie in no step, there is no
    edge (Lemma FL4).
    """
    low, high = -math.inf, math.inf
    if ranks[0] - 2 * off > 0:
        # Inside a cell nothing is known: the interval ends at its edges.
        first = int(np.argmax(totals >= min(ranks[0] - 3 * off, totals.max())))
        low = float(edges[max(first - 1, 0)])
    if ranks[1] + 2 * off < totals[-1]:
        last = int(np.flatnonzero(totals < ranks[1] + 2 * off)[-1])
        high = float(edges[min(last + 1, edges.size - 1)])
    return low, high


def _crossing(totals: FloatArray, edges: FloatArray, wanted: float) -> float:
    """Return where noisy running totals first reach a count, inside its cell."""
    reached = np.flatnonzero(totals >= wanted)
    if not reached.size:
        return float(edges[-1])
    at = int(reached[0])
    if at == 0:
        return float(edges[0])
    before, after = totals[at - 1], totals[at]
    share = (wanted - before) / max(after - before, 1e-300)
    return float(
        edges[at - 1] + min(max(share, 0.0), 1.0) * (edges[at] - edges[at - 1])
    )


class LookRelease(Release):
    """A first look at a table: what was published of each column.

    Parameters
    ----------
    domain : Domain or WideDomain
        All columns, with the cells that nothing had to be stated for.
    columns : sequence of ColumnLook
        What was published of each.
    rows : int
        How many rows the table has; public where every row is protected by what it
        holds, as here.
    mechanism : str
        The name of the mechanism.
    guarantee : Guarantee
        What is promised.
    details : mapping
        Public by-products.
    version : str
        The version of the package that made it.

    Examples
    --------
    >>> from blowfish_fast.data.tables.answers import SurveyAnswers
    >>> from blowfish_fast.mechanisms.around_releases.first_look import FirstLook
    >>> answers = SurveyAnswers({"sex": ["f", "m"] * 500, "age": range(1000)})
    >>> look = FirstLook(["sex", "age"], epsilon=8).release(answers, rng=1)
    >>> [(column.name, column.kind) for column in look.columns]
    [('sex', 'words'), ('age', 'numbers')]
    >>> [bar.label for bar in look["sex"].bars()]
    ['f', 'm']
    """

    columns: tuple[ColumnLook, ...]
    rows: int

    lacks = "a first look publishes pictures of single columns"
    instead = "Ask look['column'].bars(), .quantiles() or .missing()"

    def __init__(
        self,
        *,
        domain: Attributes,
        columns: Sequence[ColumnLook],
        rows: int,
        mechanism: str,
        guarantee: Guarantee,
        details: Mapping[str, Any],
        version: str,
    ) -> None:
        self._fill(
            {
                "domain": domain,
                "columns": tuple(columns),
                "rows": rows,
                "mechanism": mechanism,
                "guarantee": guarantee,
                "measurements": (),
                "details": MappingProxyType(dict(details)),
                "version": version,
                "interval_scope": "noise",
            }
        )

    def __getitem__(self, name: str) -> ColumnLook:
        """Return what was published of a column."""
        place: int = self.domain.axis(name)
        return self.columns[place]

    def to_bytes(self) -> bytes:
        """Return the release as the bytes of its file."""
        content = {
            "format": 1,
            "version": self.version,
            "mechanism": self.mechanism,
            "domain": self.domain.to_dict(),
            "guarantee": self.guarantee.to_dict(),
            "details": self.details,
            "rows": self.rows,
            "columns": [
                {
                    "name": column.name,
                    "kind": column.kind,
                    "ordered": column.ordered,
                    "parts": [
                        np.frombuffer(part.to_bytes(), dtype=np.uint8)
                        for part in column.parts
                    ],
                }
                for column in self.columns
            ],
        }
        return write_archive(MEMBER, content)

    @classmethod
    def from_bytes(cls, content: bytes) -> Self:
        """Read a release from `to_bytes`."""
        return cls(**read_archive(content, MEMBER, _rebuild))

    def __repr__(self) -> str:
        return f"LookRelease({len(self.columns):,} columns, {self.guarantee.spent})"


def _rebuild(content: dict[str, Any]) -> dict[str, Any]:
    domain = WideDomain.from_dict(content["domain"])
    columns = []
    for packed in content["columns"]:
        parts = [
            Release.from_bytes(np.asarray(part, dtype=np.uint8).tobytes())
            for part in packed["parts"]
        ]
        first, second = (*parts, None)[:2]
        fits = isinstance(first, HistogramRelease) and packed["kind"] in KINDS
        if not fits or not isinstance(second, HistogramRelease | SparseRelease | None):
            raise ReleaseFileError("a column of a first look holds one or two releases")
        columns.append(
            ColumnLook(
                str(packed["name"]),
                packed["kind"],
                first,
                second,
                bool(packed["ordered"]),
            )
        )
    if tuple(column.name for column in columns) != domain.names:
        raise ReleaseFileError("the columns of a first look are those of its domain")
    return {
        "domain": domain,
        "columns": columns,
        "rows": int(content["rows"]),
        "mechanism": str(content["mechanism"]),
        "guarantee": Guarantee.from_dict(content["guarantee"]),
        "details": content["details"],
        "version": str(content["version"]),
    }
