"""The kd-trees: Figures 9 to 16 of the kd-tree paper, over age and income.

Figures 9, 10    height of the hierarchical kd-tree
Figures 11, 12   both thresholds of the two-step kd-tree
Figures 13, 14   epsilon, against cells and the hierarchical kd-tree
Figures 15, 16   number of queries, against answering each of them by itself

The first of each pair shows the absolute, the second the relative error: the work is
the same and written once.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Literal

from blowfish_fast.advice.experiments.experiment import (
    Experiment,
    PaperVerdict,
    Row,
    Settings,
    Summary,
    Task,
    distinct,
    means,
    seed_of,
)
from blowfish_fast.measure.randomness import Randomness
from blowfish_fast.measure.selectors.partitions import UniformityRule

from .contenders import Contender
from .drawing import add_legend, curves
from .kdtree_setup import (
    ALPHA,
    LEAST_PART,
    PAPER,
    RELEASES,
    STAND_IN,
    error_columns,
    problem,
    released_errors,
)
from .row_statistics import geometric_mean

if TYPE_CHECKING:
    from matplotlib.figure import FigureBase

Measure = Literal["absolute", "relative"]

HEIGHTS = tuple(range(2, 17))
HEIGHT = 10
"""The best height on the stand-in; the paper fixes its own best, 13."""

COUNTS = ("0.0001", "0.0003", "0.001", "0.003", "0.01", "0.03", "0.1", "0.3")
UNIFORMITIES = (1.0, 1.2, 1.5, 2.0, 3.0)
ALPHAS = ("0.01", "0.02", "0.05", "0.1", "0.2", "0.5")
ASKED = (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150)
CROSSING: dict[Measure, int] = {"absolute": 3, "relative": 7}
"""From how many queries on the paper's kd-tree beats answering them one by one."""

CELLS = Contender("cells", "kd_tree", {"rule": None})
PRINTED = Contender(
    "kd-tree",
    "kd_tree",
    {
        "rule": UniformityRule("or", uniformity=1.5, count=0.001),
        "share": "0.5",
        "fit": "uniform",
    },
)
"""As printed, with thresholds good on the stand-in, as the paper fixes its own."""

OURS = Contender("kd-tree (ours)", "kd_tree")
HIERARCHICAL = Contender(
    "hierarchical kd-tree", "hierarchical_kd_tree", {"levels": HEIGHT}
)
INTERACTIVE = "interactive"

NOTES = (
    f"The data is a stand-in: {STAND_IN}, of the same shape as the paper's.",
    "Relative errors are divided by the true answer, or by "
    f"{LEAST_PART:.1%} of the records where that is more; the paper does not say by "
    "what.",
)


class Sweep(Experiment):
    """What the eight figures share: one task per place, rows with both errors."""

    needs = ()
    trials = RELEASES
    size = (7.0, 4.0)
    numbers: ClassVar[tuple[int, int]]
    claims: ClassVar[tuple[str, str]]
    swept: ClassVar[str]
    along: ClassVar[str]

    def __init__(self, measure: Measure) -> None:
        second = measure == "relative"
        number = self.numbers[second]
        self.measure: Measure = measure
        self.name = f"kdtree-fig{number}"
        self.title = f"{PAPER}, Figure {number}"
        self.claim = self.claims[second]
        self.protocol = (
            f"{RELEASES} releases, each asked 1000 rectangles of age and income with "
            f"two uniform ends per axis; mean {measure} error; {self.setting}; add or "
            f"remove one record; {STAND_IN}."
        )

    @property
    @abstractmethod
    def setting(self) -> str:
        """What is held fixed, in words."""

    @abstractmethod
    def verdict(self, found: dict[str, dict[float, float]]) -> PaperVerdict:
        """Judge the curves: method, then place, then mean error."""

    def curves_of(self, rows: Sequence[Row]) -> dict[str, dict[float, float]]:
        """Return mean errors by method and place."""
        found: dict[str, dict[float, float]] = {}
        table = means(rows, "method", self.swept, value=self.measure)
        for (method, place), error in table.items():
            if isinstance(place, int | float):
                found.setdefault(str(method), {})[float(place)] = error
        return found

    def summary(self, rows: Sequence[Row], settings: Settings) -> Summary:
        """Return a column per method, a line per place."""
        found = self.curves_of(rows)
        methods = [str(one) for one in distinct(rows, "method")]
        places = sorted({place for points in found.values() for place in points})
        lines = [
            [place, *(found[method].get(place) for method in methods)]
            for place in places
        ]
        if not found:
            verdict = PaperVerdict("not reproduced", "nothing was run")
        else:
            verdict = self.verdict(found)
        return Summary([self.along, *methods], lines, verdict, NOTES)

    def draw(self, rows: Sequence[Row], figure: FigureBase) -> None:
        """Draw a curve per method."""
        axes = figure.subplots()
        label = f"mean {self.measure} error"
        curves(axes, self.curves_of(rows), label=label, along=self.along)
        add_legend(axes)


class Heights(Sweep):
    """Height of the hierarchical kd-tree."""

    numbers = (9, 10)
    claims = (
        "The absolute error of the hierarchical kd-tree depends on its height, and is "
        "least around 13.",
        "The relative error of the hierarchical kd-tree depends on its height, and is "
        "least around 13.",
    )
    swept = "height"
    along = "height"
    setting = f"epsilon {ALPHA}"

    def tasks(self, settings: Settings) -> list[Task]:
        """Return one task per height."""
        heights = (2, 5) if settings.quick else HEIGHTS
        return [Task(f"height/{one}", {"height": one}) for one in heights]

    def run(self, task: Task, settings: Settings) -> list[Row]:
        """Release at one height."""
        height = task.arguments["height"]
        one = Contender(HIERARCHICAL.label, HIERARCHICAL.mechanism, {"levels": height})
        rows = released_errors(one, problem(settings, "age", "income"), settings)
        return [{**row, "height": height} for row in rows]

    def verdict(self, found: dict[str, dict[float, float]]) -> PaperVerdict:
        """Look where the error is least."""
        points = found[HIERARCHICAL.label]
        best = min(points, key=lambda place: points[place])
        at_13 = (
            f"; at 13 it is {points[13.0] / points[best]:.2f} times that"
            if 13.0 in points
            else ""
        )
        return PaperVerdict(
            "reproduced" if 12 <= best <= 14 else "not reproduced",
            f"the {self.measure} error is least at height {best:.0f}, "
            f"{points[best]:.4g}{at_13}",
        )


class Thresholds(Sweep):
    """Both thresholds of the two-step kd-tree."""

    numbers = (11, 12)
    claims = (
        "The threshold of the count significantly affects the absolute error of the "
        "two-step kd-tree, that of uniformity less.",
        "The threshold of the count significantly affects the relative error of the "
        "two-step kd-tree, that of uniformity less.",
    )
    swept = "count"
    along = "count threshold, part of the noisy total"
    setting = f"epsilon {ALPHA}, half of it for the cells, the printed rule"

    def tasks(self, settings: Settings) -> list[Task]:
        """Return one task per pair of thresholds."""
        counts = COUNTS[2::3] if settings.quick else COUNTS
        levels = UNIFORMITIES[1::2] if settings.quick else UNIFORMITIES
        return [
            Task(f"{level}/{count}", {"uniformity": level, "count": count})
            for level in levels
            for count in counts
        ]

    def run(self, task: Task, settings: Settings) -> list[Row]:
        """Release at one pair of thresholds."""
        level, count = task.arguments["uniformity"], float(task.arguments["count"])
        one = Contender(
            f"uniformity {level}",
            PRINTED.mechanism,
            {**PRINTED.options, "rule": UniformityRule("or", level, count)},
        )
        rows = released_errors(one, problem(settings, "age", "income"), settings)
        return [{**row, "count": count} for row in rows]

    def verdict(self, found: dict[str, dict[float, float]]) -> PaperVerdict:
        """Compare how far the error ranges along each threshold."""
        by_count = geometric_mean(
            max(points.values()) / min(points.values()) for points in found.values()
        )
        places = {place for points in found.values() for place in points}
        by_level = geometric_mean(
            max(here) / min(here)
            for place in places
            if (here := [points[place] for points in found.values() if place in points])
        )
        return PaperVerdict(
            "reproduced" if by_count > max(1.5, by_level) else "not reproduced",
            f"worst over best {self.measure} error: {by_count:.2f} along the count "
            f"threshold, {by_level:.2f} along that of uniformity",
        )


class Alphas(Sweep):
    """Epsilon, for all methods."""

    numbers = (13, 14)
    claims = (
        "The two-step kd-tree has the least absolute error at every epsilon, below "
        "noisy cells and the hierarchical kd-tree.",
        "The two-step kd-tree has the least relative error at every epsilon, by far: "
        "it serves sparse data.",
    )
    swept = "alpha"
    along = "epsilon"
    setting = f"height {HEIGHT} and thresholds fixed where they are good"
    contenders = (CELLS, HIERARCHICAL, PRINTED, OURS)

    def tasks(self, settings: Settings) -> list[Task]:
        """Return one task per method and epsilon."""
        alphas = ALPHAS[2::3] if settings.quick else ALPHAS
        return [
            Task(f"{one.label}/{alpha}", {"method": number, "alpha": alpha})
            for number, one in enumerate(self.contenders)
            for alpha in alphas
        ]

    def run(self, task: Task, settings: Settings) -> list[Row]:
        """Release one method at one epsilon."""
        return released_errors(
            self.contenders[task.arguments["method"]],
            problem(settings, "age", "income"),
            settings,
            alpha=task.arguments["alpha"],
        )

    def verdict(self, found: dict[str, dict[float, float]]) -> PaperVerdict:
        """Hold the paper's kd-tree against the best of the others, then ours."""
        others = [
            found[one.label] for one in (CELLS, HIERARCHICAL) if one.label in found
        ]
        if len(others) < 2 or PRINTED.label not in found:
            return PaperVerdict("not reproduced", "not every method was run")
        printed = found[PRINTED.label]
        places = [one for one in printed if all(one in points for points in others)]
        ratio = {
            one: printed[one] / min(points[one] for points in others) for one in places
        }
        won = sum(value < 1.0 for value in ratio.values())
        by = (
            f"the paper's rule has {geometric_mean(ratio.values()):.2f} times the "
            f"{self.measure} error of the better of cells and hierarchical kd-tree, "
            f"and less than it at {won} of {len(ratio)} epsilons"
        )
        ours = found.get(OURS.label, {})
        both = [one for one in places if one in ours]
        if both:
            best = geometric_mean(
                ours[one] / min(points[one] for points in others) for one in both
            )
            by += f"; ours has {best:.2f} times"
        if won == len(ratio):
            return PaperVerdict("reproduced", by)
        beaten = bool(both) and all(
            ours[one] < min(printed[one], *(points[one] for points in others))
            for one in both
        )
        return PaperVerdict("beaten" if beaten else "not reproduced", by)


class Interactive(Sweep):
    """Number of queries that share epsilon when each is answered by itself."""

    numbers = (15, 16)
    claims = (
        "Answering each query by itself is better for few of them; from about 3 "
        "queries on the kd-tree has the lower absolute error.",
        "Answering each query by itself is better for few of them; from about 7 "
        "queries on the kd-tree has the lower relative error.",
    )
    swept = "queries"
    along = "number of queries"
    setting = f"epsilon {ALPHA} for all queries together"

    def tasks(self, settings: Settings) -> list[Task]:
        """Return one task per kd-tree, and one for the queries by themselves."""
        return [
            Task(PRINTED.label, {"method": "printed"}),
            Task(OURS.label, {"method": "ours"}),
            Task(INTERACTIVE, {"method": INTERACTIVE}),
        ]

    def run(self, task: Task, settings: Settings) -> list[Row]:
        """Release one method; a release costs the same however much it is asked."""
        asked = ASKED[::6] if settings.quick else ASKED
        if task.arguments["method"] == INTERACTIVE:
            return [
                row for queries in asked for row in self._one_by_one(settings, queries)
            ]
        one = PRINTED if task.arguments["method"] == "printed" else OURS
        rows = released_errors(one, problem(settings, "age", "income"), settings)
        return [{**row, "queries": queries} for queries in asked for row in rows]

    def _one_by_one(self, settings: Settings, queries: int) -> list[Row]:
        """Answer the same queries, so many of them sharing epsilon."""
        over = problem(settings, "age", "income")
        rows: list[Row] = []
        # Each of the counts that share epsilon changes by 1 and gets a part of it.
        scale = queries / Fraction(ALPHA)
        for trial in range(settings.trials):
            truth = over.asked(settings, trial).answer(over.counts)
            seed = seed_of(settings, INTERACTIVE, queries, trial)
            drawn = Randomness(seed).laplace(
                scale.numerator, scale.denominator, size=truth.size
            )
            rows.append(
                {
                    "set": STAND_IN,
                    "method": INTERACTIVE,
                    "alpha": float(ALPHA),
                    "trial": trial,
                    "queries": queries,
                    **error_columns(truth + drawn, truth, over.records),
                }
            )
        return rows

    def verdict(self, found: dict[str, dict[float, float]]) -> PaperVerdict:
        """Look from how many queries on a kd-tree is better."""
        alone = found.get(INTERACTIVE)
        if alone is None or PRINTED.label not in found:
            return PaperVerdict("not reproduced", "not every method was run")
        crossing = {
            one: min(
                (
                    place
                    for place in alone
                    if found[one].get(place, math.inf) < alone[place]
                ),
                default=None,
            )
            for one in (PRINTED.label, OURS.label)
            if one in found
        }
        wanted = CROSSING[self.measure]
        printed = crossing[PRINTED.label]
        words = ", ".join(
            f"{one} from {place:.0f} on"
            if place
            else f"{one} never up to {max(alone):.0f}"
            for one, place in crossing.items()
        )
        near = printed is not None and abs(printed - wanted) <= max(1, wanted // 3)
        ours = crossing.get(OURS.label)
        beaten = ours is not None and ours <= wanted
        return PaperVerdict(
            "reproduced" if near else "beaten" if beaten else "not reproduced",
            f"lower {self.measure} error than one by one: {words}; the paper has "
            f"{wanted}",
        )


MEASURES: tuple[Measure, Measure] = ("absolute", "relative")
EXPERIMENTS = tuple(
    kind(measure)
    for kind in (Heights, Thresholds, Alphas, Interactive)
    for measure in MEASURES
)
