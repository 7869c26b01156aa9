"""Names that people try first, and the names that we have for what they mean.

    bf.Domain.from_categories    other libraries' word      from_levels
    release.groupby              a missing underline        group_by
    bf.plotting.heatmap          what others call a map     grid_map
    bf.Line                      in another package         policies.Line

Whoever misses a name gets an AttributeError as ever, with our name in it: tab
completion, `hasattr` and copying see nothing new.
"""

from __future__ import annotations

import importlib
from abc import ABCMeta
from collections.abc import Callable, Iterable
from typing import Any

from blowfish_fast.errors import nearest

OUR_NAMES = {
    # Domains and histograms.
    "from_categories": "Domain.from_levels",
    "from_labels": "Domain.from_levels",
    "from_values": "Domain.from_levels",
    "from_bins": "Domain.from_edges",
    "from_range": "Domain.from_edges",
    "from_shape": "Domain((rows, columns))",
    "from_csv": "Histogram.from_records, or `blowfish release FILE`",
    "read_csv": "Histogram.from_records, or `blowfish release FILE`",
    "from_pandas": "Histogram.from_records",
    "from_polars": "Histogram.from_records",
    "from_dataframe": "Histogram.from_records",
    "from_frame": "Histogram.from_records",
    # Releases.
    "load": "Release.load",
    "read": "Release.load",
    "open": "Release.load",
    "groupby": "release.group_by",
    "mean": "release.where().mean(name)",
    "average": "release.where().mean(name)",
    "variance": "release.where().variance(name)",
    "var": "release.where().variance(name)",
    "count": "release.where(...).count()",
    "sum": "release.where().sum(name), or release.where(...).count()",
    "total": "release.where().count()",
    "marginal": "release.group_by(name).count()",
    "crosstab": "release.group_by(name, other).count()",
    "value_counts": "release.group_by(name).count()",
    "by": "release.group_by",
    "describe": "release.explain",
    "summary": "release.explain",
    "share": "release.where(...).relative_count()",
    "proportion": "release.where(...).relative_count()",
    "query": "release.where, or release.answer",
    "filter": "release.where",
    "quantiles": "release.quantile",
    "median": "release.quantile(name, 0.5)",
    "percentile": "release.quantile",
    "confidence_interval": "release.intervals",
    "interval": "release.intervals",
    "ci": "release.intervals",
    "std": "release.where().std(name), or release.standard_errors",
    "stderr": "release.standard_errors",
    "counts": "release.estimate",
    "values": "release.estimate",
    "histogram": "release.estimate, or plotting.histogram",
    "to_dataframe": "release.to_pandas",
    "to_frame": "release.to_pandas",
    "to_df": "release.to_pandas",
    "head": "release.to_pandas().head",
    "tail": "release.to_pandas().tail",
    "sort_values": "release.to_pandas().sort_values",
    "pivot": "release.group_by(name, other).count()",
    "pivot_table": "release.group_by(name, other).count()",
    "loc": "release.where",
    "iloc": "release.where",
    "get": "release.where",
    "drop": "release.group_by, with the columns that stay",
    "columns": "release.domain.names",
    "shape": "release.domain.shape",
    "to_numpy": "release.estimate",
    "merge": "release.combine(other), or release.to_pandas().merge",
    "join": "release.combine(other), or release.to_pandas().join",
    "combine": "release.combine(other)",
    "concat": "release.combine(other, disjoint=True)",
    "min": "release.quantile(name, 0.01); the least value is that of one person",
    "max": "release.quantile(name, 0.99); the largest value is that of one person",
    "to_json": "release.to_table().to_dict(), or release.save",
    "info": "release.explain",
    "budget": "release.guarantee",
    "to_excel": "release.to_table().to_xlsx",
    "to_parquet": "release.to_table().to_parquet",
    "synthesize": "release.sample",
    "epsilon": "release.guarantee",
    # Pictures.
    "heatmap": "plotting.grid_map",
    "map": "plotting.grid_map",
    "bar": "plotting.histogram",
    "hist": "plotting.histogram",
    "plot": "plotting.histogram, or release.plot()",
    # Mechanisms and accounts.
    "Accountant": "Ledger",
    "BudgetAccountant": "Ledger",
    "Budget": "Ledger(epsilon=..., policy=...)",
    "DAWA": "Dawa",
    "LaplaceMechanism": "Laplace",
    "GaussianMechanism": "Gaussian",
    "Policy": "policies",
    "Workload": "workloads",
    "DifferentialPrivacy": "policies.AddRemove, or policies.Full",
    "Unbounded": "policies.AddRemove",
    "Bounded": "policies.Full",
    "Distance": "policies.Threshold",
    "Neighbours": "policies.Line",
    "Grid": "policies.Threshold",
    "Histogram": "workloads.Identity",
    "Marginals": "workloads.Tables",
    "Cumulative": "workloads.Prefixes",
    "CDF": "workloads.Prefixes",
}
"""What a name that we have not got probably means."""


NAMES_OF_QUESTIONS = {
    **dict.fromkeys(("share", "fraction", "proportion", "percent"), "relative_count()"),
    **dict.fromkeys(("total", "size", "estimate", "values"), "count()"),
    **dict.fromkeys(("interval", "intervals", "ci"), "count().interval()"),
    "average": "mean(name)",
    "median": "quantile(name, 0.5)",
    "percentile": "quantile(name, q)",
    "quantiles": "quantile(name, q)",
    "var": "variance(name)",
    "groupby": "group_by",
    "filter": "where",
    "population": "in_population()",
}
"""What other libraries call the questions about selected records, and what we do."""


PACKAGES = {
    "policies": "policies",
    "workloads": "workloads",
    "mechanisms": "mechanisms",
    "sampling": "release.sampling",
    "partitions": "measure.selectors.partitions",
    "strategies": "measure.strategies",
    "errors": "errors",
    "plotting": "plotting",
}
"""Where people look for names in vain that stand next door: by public name, the place
inside this package."""


def other_package(name: str) -> str | None:
    """Return the public package that has a name; None where none has it.

    Packages are imported only now, when somebody has missed a name.

    Parameters
    ----------
    name : str
        The name that was tried somewhere else.

    Returns
    -------
    str or None
        The name behind its package.

    Examples
    --------
    >>> other_package("Line")
    'policies.Line'
    """
    home = __name__.partition(".")[0]
    for package, place in PACKAGES.items():
        module = importlib.import_module(f"{home}.{place}")
        own = getattr(vars(module).get(name), "__module__", None) == module.__name__
        if name in getattr(module, "__all__", ()) or own:
            return f"{package}.{name}"
    return None


def ways_to_ask(domain: Any, key: Any) -> str:
    """Say how a release is asked for what somebody wrote between square brackets.

    Parameters
    ----------
    domain : Domain or WideDomain
        The cells of the release.
    key : object
        What was written: a column, a value of one, or anything else.

    Returns
    -------
    str
        The beginning of a sentence, with names of this very release.
    """
    columns = list(domain.column_names)
    if key in columns:
        return f"Counts along this column are release.group_by({key!r}).count()"
    for column, attribute in zip(columns, domain.attributes, strict=True):
        levels = getattr(attribute, "levels", None)
        if isinstance(key, str) and levels is not None and key in list(levels):
            asked = f"release.where({{{column!r}: {key!r}}}).count()"
            return f"Those with this {column} are {asked}"
    return (
        f"Counts along a column are release.group_by({columns[0]!r}).count(), counts "
        "of a condition release.where(...).count()"
    )


def question_words(owner: type, name: str) -> str:
    """Return the message about a question that selections do not answer by that name.

    Parameters
    ----------
    owner : type
        The class of the selection or of the groups.
    name : str
        The name that was tried.

    Returns
    -------
    str
        What is missing, and the right name where there is one.
    """
    asked = NAMES_OF_QUESTIONS.get(name)
    hint = f" (did you mean {asked}?)" if asked else nearest(name, dir(owner))
    return f"a {owner.__name__.lower()} has no attribute {name!r}{hint}"


def near_miss(name: str, known: Iterable[str]) -> str:
    """Return the end of a message about a name that is not there.

    Parameters
    ----------
    name : str
        The name that was tried.
    known : Iterable[str]
        The names that are there.

    Returns
    -------
    str
        " (did you mean ...?)", or nothing.

    Examples
    --------
    >>> near_miss("groupby", ["group_by", "where"])
    ' (did you mean release.group_by?)'
    >>> near_miss("wher", ["group_by", "where"])
    " (did you mean 'where'?)"
    """
    ours = OUR_NAMES.get(name)
    if ours is not None:
        return f" (did you mean {ours}?)"
    return nearest(name, (word for word in known if not word.startswith("_")))


def missing_name(package: str, name: str, public: Iterable[str]) -> str:
    """Return the message about a name that a package has not got.

    Parameters
    ----------
    package : str
        The name of the package.
    name : str
        The name that was tried.
    public : Iterable[str]
        The names that it has.

    Returns
    -------
    str
        What is missing, and the right name where there is one.

    Examples
    --------
    >>> missing_name("blowfish_fast", "Line", ["Dawa", "Laplace"])
    "module 'blowfish_fast' has no attribute 'Line' (did you mean policies.Line?)"
    """
    # Machinery asks for names with an underline all the time, and means no other.
    hint = ""
    if not name.startswith("_"):
        elsewhere = None if name in OUR_NAMES else other_package(name)
        hint = f" (did you mean {elsewhere}?)" if elsewhere else near_miss(name, public)
    return f"module {package!r} has no attribute {name!r}{hint}"


def hints_of(package: str, public: Iterable[str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package that answers missing names.

    Parameters
    ----------
    package : str
        The name of the package.
    public : Iterable[str]
        The names that it has.

    Returns
    -------
    callable
        Raises an AttributeError with the right name, where there is one.
    """
    names = list(public)

    def __getattr__(name: str) -> Any:
        raise AttributeError(missing_name(package, name, names))

    return __getattr__


class Hinting(type):
    """The kind of classes whose missing names are answered with the right ones."""

    def __getattr__(cls, name: str) -> Any:
        hint = "" if name.startswith("_") else near_miss(name, dir(cls))
        raise AttributeError(f"{cls.__name__} has no attribute {name!r}{hint}")


class AbstractHinting(Hinting, ABCMeta):
    """The same for classes with abstract methods, whose `isinstance` is slower."""
