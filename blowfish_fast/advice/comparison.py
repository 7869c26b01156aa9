"""The predicted error of every mechanism that a policy admits, without reading data.

The errors are exact for the noise that would be drawn, before any fit.
"""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from blowfish_fast._support.optional import require
from blowfish_fast._support.validation import naming_right_words
from blowfish_fast.data.buckets import Buckets, cell_order
from blowfish_fast.data.domain import Domain
from blowfish_fast.errors import (
    BlowfishError,
    DataDependentError,
    InputError,
    SizeError,
    WorkloadError,
)
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.measure.strategies.edge_cuts import cut_edges, is_forest
from blowfish_fast.measure.strategies.edge_noise import MOST_EDGES, EdgeNoise
from blowfish_fast.measure.strategies.strategy_choice import (
    NAMES,
    Choice,
    Name,
    all_choices,
)
from blowfish_fast.mechanisms.base import Mechanism
from blowfish_fast.mechanisms.laplace import Gaussian, Laplace
from blowfish_fast.mechanisms.registry import (
    MECHANISMS,
    MechanismName,
    built,
    find_mechanism,
)
from blowfish_fast.mechanisms.transformed import Transformed
from blowfish_fast.mechanisms.wide_questions import refuse_wide_advice
from blowfish_fast.policies import Line, Policy, refuse_units
from blowfish_fast.workloads import Form, Implicit, LevelTotals, Linear, Workload

from .wide_advice import asks_wide, serving, serving_reason, single_cells

LONGEST_REASON = 100


class Named(Protocol):
    """What a line has in any case."""

    @property
    def name(self) -> str:
        """By which it is asked for."""
        ...


Ranked = TypeVar("Ranked", bound=Named)
Cells = tuple[str, str, str]


class Ranking(ABC, Generic[Ranked]):
    """Lines by name, best first, as `compare` and `recommend` return them.

    Parameters
    ----------
    lines : Iterable[Ranked]
        The lines.
    heading : str
        The heading of the table.
    because : Iterable[str], default ()
        The reasons in sentences, where there are any.
    """

    def __init__(
        self, lines: Iterable[Ranked], heading: str, because: Iterable[str] = ()
    ) -> None:
        self.lines, self.because = tuple(lines), tuple(because)
        self.heading = heading

    @property
    def best(self) -> Ranked:
        """The first line."""
        return self.lines[0]

    @property
    @abstractmethod
    def rows(self) -> list[dict[str, Any]]:
        """The lines as plain data, for tables and JSON."""

    @abstractmethod
    def _table(self) -> tuple[Cells, list[Cells]]:
        """Return the heads and the cells of the table."""

    def __iter__(self) -> Iterator[Ranked]:
        return iter(self.lines)

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, name: str) -> Ranked:
        for line in self.lines:
            if line.name == name:
                return line
        raise KeyError(name)

    def __str__(self) -> str:
        heads, lines = self._table()
        width, wide = (max(len(row[at]) for row in (heads, *lines)) for at in (0, 1))
        shown = [self.heading]
        for name, number, rest in (heads, *lines):
            shown.append(f"{name:{width}}   " + (f"{number:>{wide}}   " * bool(number)))
            shown[-1] += rest
        return "\n".join([*shown, *([""] if self.because else []), *self.because])

    def to_dict(self) -> dict[str, Any]:
        """Return heading, rows and reasons as plain data, for JSON."""
        because = {"because": [*self.because]} if self.because else {}
        return {"heading": self.heading, "rows": self.rows, **because}

    def to_pandas(self) -> Any:
        """Return `rows` as a pandas data frame."""
        pandas = require("pandas", extra="frames", purpose="a pandas data frame")
        return pandas.DataFrame(self.rows)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} lines, best: {self.best.name})"

    def _repr_html_(self) -> str:
        from blowfish_fast._support.html import panel, table

        return panel(self.heading, drawing=table(*self._table()))


def shorten(reason: str) -> str:
    """Return the first words of a reason, on one line."""
    text = " ".join(reason.split())
    if len(text) <= LONGEST_REASON:
        return text
    return text[:LONGEST_REASON].rsplit(" ", 1)[0] + " ..."


# Their strategies are compared by name.
COVERED = ("laplace", "ordered", "ordered_hierarchical", "transformed")
ALONG_A_LINE: tuple[Name, ...] = ("tuned_tree",)
ON_MAPS = ("quad_tree",)
OF_DISTRICTS = ("nested",)
"""Weighed where levels of districts are asked, or by name."""
QUERIES = "queries"
"""Noise on the stated queries themselves."""
MANY_CELLS = 2**18
"""Beyond, only what has a closed form is predicted along edges."""
FEW_COEFFICIENTS = 2**20
"""Cells in all queries up to which noise on the queries is weighed in a hurry."""


class Prediction(NamedTuple):
    """One line of a comparison.

    Attributes
    ----------
    name : str
        The name of the mechanism.
    total : float
        Expected squared error over all queries; infinite where nothing is known.
    mean : float
        The same per query.
    mechanism : Mechanism or None
        Ready to release; None where the policy does not admit it.
    data_dependent : bool
        Whether only a release tells its errors.
    reason : str
        Why nothing is known.
    """

    name: str
    total: float
    mean: float
    mechanism: Mechanism | None
    data_dependent: bool
    reason: str

    @property
    def admissible(self) -> bool:
        """Whether an error was predicted."""
        return math.isfinite(self.total)


class Comparison(Ranking[Prediction]):
    """Predicted errors, best first, unknown ones last; ``str()`` gives a table.

    Parameters
    ----------
    predictions : list[Prediction]
        The lines, in any order.
    heading : str
        The heading of the table.
    because : Iterable[str], default ()
        The reasons in sentences, where there are any.
    """

    def __init__(
        self, predictions: list[Prediction], heading: str, because: Iterable[str] = ()
    ) -> None:
        # Sums of one value in different orders differ in their last digits.
        by_error = sorted(
            predictions, key=lambda prediction: float(f"{prediction.total:.9e}")
        )
        super().__init__(by_error, heading, because)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The predictions as plain data, for tables and JSON."""
        return [
            {
                "name": line.name,
                "total": line.total if line.admissible else None,
                "mean": line.mean if line.admissible else None,
                "times_best": self._times_best(line) if line.admissible else None,
                "data_dependent": line.data_dependent,
                "reason": line.reason,
            }
            for line in self
        ]

    def _times_best(self, line: Prediction) -> float:
        if self.best.total == 0.0:
            return 1.0 if line.total == 0.0 else math.inf
        return line.total / self.best.total

    def _table(self) -> tuple[Cells, list[Cells]]:
        lines = []
        for line in self:
            if line.admissible:
                times = f"{self._times_best(line):6.2f}"
                lines.append((line.name, f"{line.mean:,.6g}", times))
            else:
                why = "" if line.data_dependent else "not admitted: "
                lines.append((line.name, "", why + shorten(line.reason)))
        return ("mechanism", "mean squared error", "x best"), lines


@naming_right_words
def compare(
    policy: Policy,
    workload: Workload | None = None,
    *,
    epsilon: Any = None,
    rho: Any = None,
    delta: Any = None,
    hurried: bool = False,
    mechanisms: Sequence[MechanismName] | None = None,
) -> Comparison:
    """Predict the error of every mechanism that a policy admits, best first.

    Free: no data is read. Mechanisms that choose from the data are listed without a
    number, and so is the one that serves a wide domain.

    Parameters
    ----------
    policy : Policy
        What must stay indistinguishable.
    workload : Workload, optional
        What will be asked; by default every single cell.
    epsilon, rho, delta : number
        What one release may spend: `epsilon`, or `rho`. With `epsilon` and `delta` both
        currencies stand side by side, as in `recommend`: Laplace noise at epsilon, and
        Gaussian noise at the largest rho that implies both, marked "(rho)".
    hurried : bool
        Leave out what takes long to predict and is unlikely to win.
    mechanisms : sequence of str or class, optional
        What to compare, instead of everything in the package: names of mechanisms or
        strategies, ``"package:Class"``, or classes (`find_mechanism`).

    Returns
    -------
    Comparison
        The lines, best first; ``str()`` gives a table.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> line = bf.Domain(1000)
    >>> policy = bf.policies.Threshold(line, theta=20)
    >>> table = bf.compare(policy, bf.workloads.AllRanges(line), epsilon=0.1)
    >>> table.best.name
    'ordered_hierarchical'
    >>> table["cells"].total > 10 * table.best.total
    True
    >>> release = table.best.mechanism.release([3] * 1000)
    """
    if workload is None:
        workload = single_cells(policy)
    if mechanisms is not None:
        refuse_wide_advice(policy, workload)
    granted = Budget.stated(epsilon=epsilon, rho=rho, delta=delta)
    if asks_wide(policy, workload):
        return _wide_comparison(policy, workload, both_budgets(granted, epsilon))
    if granted.delta is not None and granted is not epsilon:
        pure = Budget.stated(epsilon=epsilon)
        alike: Any = {"hurried": hurried, "mechanisms": mechanisms}
        in_epsilon = compare(policy, workload, epsilon=pure, **alike)
        in_rho = compare(policy, workload, epsilon=granted, **alike)
        marked = [line._replace(name=f"{line.name} (rho)") for line in in_rho]
        comparable = in_epsilon.best.total > 0 and in_rho.best.admissible
        times = in_rho.best.total / in_epsilon.best.total if comparable else 1.0
        heading = f"{in_epsilon.heading}, or {granted.in_short()}"
        because = [better_noise(pure, granted, times)]
        return Comparison([*in_epsilon, *marked], heading, because)
    # The constructor checks that policy and workload fit each other.
    Transformed(policy, workload, epsilon=granted, partition=None)
    refuse_units(policy, "which mechanism errs least")
    if mechanisms is None:
        lines = _strategies(policy, workload, granted, hurried, NAMES)
        lines.append(_queries(policy, workload, granted, hurried, named=False))
        chosen = {
            name: kind
            for name, kind in MECHANISMS.items()
            if name not in COVERED
            and (name not in OF_DISTRICTS or isinstance(workload, LevelTotals))
        }
    else:
        strategies = tuple(name for name in NAMES if name in mechanisms)
        lines = _strategies(policy, workload, granted, hurried, strategies)
        if QUERIES in mechanisms:
            lines.append(_queries(policy, workload, granted, hurried, named=True))
        chosen = _chosen(mechanisms)
    for name, kind in chosen.items():
        if _takes_workload(kind):
            if mechanisms is None and name in ON_MAPS and policy.domain.ndim == 1:
                why = "it divides maps; on one attribute it is a binary hierarchy"
                lines.append(Prediction(name, math.inf, math.inf, None, False, why))
                continue
            build = partial(built, kind, policy, workload, epsilon=granted)
            lines.append(_predict(name, build, workload))
    if not lines:
        raise InputError(f"there is nothing to compare; received {mechanisms!r}")
    return Comparison(lines, f"{workload!r} under {policy!r}, {granted.in_short()}")


@lru_cache(maxsize=256)
def _takes_workload(kind: type[Mechanism]) -> bool:
    return "workload" in inspect.signature(kind).parameters


def both_budgets(granted: Budget, epsilon: Any) -> list[Budget]:
    """Return what was granted, and epsilon alone before it where there is a delta.

    Parameters
    ----------
    granted : Budget
        What was stated.
    epsilon : number, str, Fraction or Budget
        As it was stated; a budget is taken as it is.

    Returns
    -------
    list of Budget
        One or two.
    """
    if granted.delta is None or granted is epsilon:
        return [granted]
    return [Budget.stated(epsilon=epsilon), granted]


def _wide_comparison(
    policy: Policy, workload: Workload, budgets: list[Budget]
) -> Comparison:
    """Return the line of the one mechanism that serves, in each currency."""
    lines = []
    for budget in budgets:
        mechanism = serving(policy, workload, budget)
        name = mechanism.name + " (rho)" * (len(budgets) > 1 and budget.power == 2)
        reason = serving_reason(mechanism)
        lines.append(Prediction(name, math.inf, math.inf, mechanism, True, reason))
    spent = ", or ".join(budget.in_short() for budget in budgets)
    return Comparison(lines, f"{workload!r} under {policy!r}, {spent}")


def better_noise(pure: Budget, granted: Budget, times: float) -> str:
    """Say which noise errs less, and where not.

    Parameters
    ----------
    pure : Budget
        The budget in epsilon.
    granted : Budget
        The budget in rho, with its delta.
    times : float
        Squared error of Gaussian noise over that of Laplace noise.

    Returns
    -------
    str
        The sentences.
    """
    rows = float(pure) ** 2 / (4 * float(granted))
    better, factor = ("Laplace", times) if times >= 1 else ("Gaussian", 1 / times)
    assert granted.delta is not None
    return (
        f"{better} noise is better for this one release: at delta = "
        f"{float(granted.delta):g} the two differ by {factor:,.3g} times in squared "
        f"error. Gaussian noise wins where one edge moves more than about {rows:.3g} "
        "rows alike: many questions or tables from one ledger in rho, long edges, deep "
        "trees."
    )


def _chosen(mechanisms: Sequence[MechanismName]) -> dict[str, type[Mechanism]]:
    """Return the mechanisms among what was asked for, by the names they go by."""
    if isinstance(mechanisms, str):
        raise InputError(
            f"mechanisms is a list of names or classes; received {mechanisms!r}"
        )
    chosen: dict[str, type[Mechanism]] = {}
    for mechanism in mechanisms:
        if mechanism not in (*NAMES, QUERIES):
            kind = find_mechanism(mechanism)
            if chosen.setdefault(kind.name, kind) is not kind:
                raise InputError(f"two mechanisms are called {kind.name!r}; rename one")
    return chosen


def _strategies(
    policy: Policy,
    workload: Workload,
    budget: Budget,
    hurried: bool,
    asked: tuple[Name, ...],
) -> list[Prediction]:
    drawn_at = budget.over(policy.group_size)
    free = policy.unconstrained
    form = workload.form(Buckets.single_cells(policy.domain.size))
    lined = policy.domain.ndim == 1
    choices = _along_edges(free, form, drawn_at, asked)
    followed = {choice.name for choice in choices}
    names = [name for name in asked if name not in followed]
    here = [name for name in names if lined or name not in ALONG_A_LINE]
    choices += all_choices(
        free, form, drawn_at, names=here, hurried=hurried, public_form=True
    )
    elsewhere = [name for name in names if name not in here]
    if elsewhere:
        along = cell_order(policy.domain)
        choices += all_choices(
            free.project(along),
            workload.form(along),
            drawn_at,
            names=elsewhere,
            public_form=True,
        )
    lines = []
    # Ties are settled in this order.
    for choice in sorted(choices, key=lambda choice: NAMES.index(choice.name)):
        ready = None
        if not choice.reason:
            ready = Transformed(
                policy, workload, epsilon=budget, partition=None, strategy=choice.name
            )
            if choice.prepared is not None:
                ready._compared = budget.power, choice.prepared
        mean = choice.variance / max(workload.queries, 1)
        lines.append(
            Prediction(choice.name, choice.variance, mean, ready, False, choice.reason)
        )
    return lines


def _along_edges(
    policy: Policy, form: Form, budget: Budget, asked: tuple[Name, ...]
) -> list[Choice]:
    """Predict noise on edges and spanning trees where no edge need be listed.

    A tree that keeps every edge measures the same as noise on the edges.
    """
    if not {"edges", "tree"} & {*asked}:
        return []
    cuts = None if policy.edge_count > MOST_EDGES else cut_edges(policy, form)
    many = policy.domain.size > MANY_CELLS
    choices: list[Choice] = []
    if cuts is not None:
        pair = Line(Domain(2))
        each = float(EdgeNoise.under(pair).scales(pair, budget).variances[0])
        names: tuple[Name, ...] = ("edges", "tree") if is_forest(policy) else ("edges",)
        choices = [
            Choice(name, None, cuts * each, "") for name in names if name in asked
        ]
    elif many and "edges" in asked and not isinstance(form, Implicit):
        why = "queries are followed along edges on up to 2^18 cells"
        choices.append(Choice("edges", None, math.inf, why))
    if many and "tree" in asked and not (cuts is not None and is_forest(policy)):
        why = "spanning trees are held against all edges on up to 2^18 cells"
        choices.append(Choice("tree", None, math.inf, why))
    return choices


def _queries(
    policy: Policy, workload: Workload, budget: Budget, hurried: bool, *, named: bool
) -> Prediction:
    """Weigh noise on the queries; unless `named`, only where a person listed them."""

    def build() -> Mechanism:
        if not (named or workload.declared):
            raise WorkloadError(
                "random queries stand for what may be asked, and noise on them alone "
                "would leave everything else unknown; list the queries, or name "
                '"queries"'
            )
        if hurried and _coefficients(workload) > FEW_COEFFICIENTS:
            raise SizeError("its queries hold too many cells to be weighed in a hurry")
        kind = Laplace if budget.power == 1 else Gaussian
        return kind(policy, workload, epsilon=budget, strategy="queries")

    return _predict(QUERIES, build, workload)


def _coefficients(workload: Workload) -> float:
    """Return how many cells the queries hold in all; large weights count once."""
    if isinstance(workload, Linear):
        return float(workload.matrix.nnz)
    return workload.queries * workload.mean_cells()


def _predict(name: str, build: Any, workload: Workload) -> Prediction:
    mechanism = None
    try:
        mechanism = build()
        total = mechanism.expected_total_error()
    except DataDependentError:
        why = "depends on the data: only a release tells"
        return Prediction(name, math.inf, math.inf, mechanism, True, why)
    except BlowfishError as problem:
        return Prediction(name, math.inf, math.inf, None, False, str(problem))
    return Prediction(
        name, total, total / max(workload.queries, 1), mechanism, False, ""
    )
