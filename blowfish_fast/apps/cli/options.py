"""Options of the commands; nothing heavy is imported, so that help pages are fast."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from blowfish_fast.errors import InputError

POLICIES = (
    ("add_remove", "whether someone is in the data"),
    ("full", "any two values; the number of people is public"),
    ("line", "neighbouring values"),
    ("attribute", "records that differ in one column"),
    ("threshold:", "values at most so many cells apart"),
    ("blocks:", "values inside one block"),
    ("graph:", "pairs of cells from a file"),
    ("neighbours", "districts with a common border"),
    ("product:", "one policy per column"),
)
POLICY_FORMS = (
    "add_remove, full, line, attribute, threshold:THETA (:value, :l2 or :linf), "
    "blocks:SIZE, blocks:f|m/x, blocks:FILE, blocks:FILE:COLUMN, graph:FILE, "
    "neighbours (of polygons), "
    "attribute:COLUMN=POLICY,COLUMN=public or product:POLICY,POLICY; the policy of a "
    "column with +extras:end or +extras:apart for what its missing values are joined "
    "to; each with +known:COLUMN where the totals of a column are "
    'public, or +presence:EDGES where it is secret who is there, so far from "absent"'
)
WORKLOADS = (
    ("identity", "every cell"),
    ("prefixes", "running totals"),
    ("all_ranges", "every range"),
    ("total", "the number of people"),
    ("ranges:", "random ranges, or those of a file"),
    ("rectangles:", "random rectangles, or those of a file"),
    ("marginals:", "the table over some columns"),
    ("levels:", "districts inside districts, by importance"),
)
DEFAULT_WORKLOAD = "identity"
"""Single cells, as in Python."""
WORKLOAD_FORMS = (
    "identity, prefixes, all_ranges, total, ranges:NUMBER, rectangles:NUMBER, "
    "ranges:FILE, rectangles:FILE, marginals:COLUMN,COLUMN, tables:WAYS, "
    "tables:COLUMN,COLUMN+COLUMN*WEIGHT, levels:FILE:LARGEST,SMALLEST*WEIGHT, "
    "levels:codes:2,5 or levels:h3:5,7; several with | between them"
)
SAMPLES = (
    ("simple", "everybody as likely, of a superpopulation"),
    ("simple:", "everybody as likely, of so many people"),
    ("bernoulli:", "everybody with one chance"),
    ("poisson", "events that occur independently"),
    ("stratified:", "some of each stratum, whose sizes are public"),
    ("weighted:", "everybody with the chance 1 / weight"),
)
SAMPLE_FORMS = (
    "simple:PEOPLE, simple:PEOPLE:replacement, simple (of a superpopulation), "
    "bernoulli:RATE, poisson, stratified:COLUMN:LEVEL=PEOPLE,LEVEL=PEOPLE, "
    "weighted:COLUMN:WEIGHT,WEIGHT (:trimmed=CUT,CUT), or a job file with [sample]"
)
SUFFIXES = (".csv", ".npy", ".txt")
"""Endings of files of numbers, labels or queries."""
Offers = list[tuple[str, str]]
"""What the shell offers after Tab, and what each means."""


def offer_policies(incomplete: str) -> Offers:
    """Return the policies that begin so."""
    return _offers_that_begin(POLICIES, incomplete)


def offer_workloads(incomplete: str) -> Offers:
    """Return the workloads that begin so."""
    return _offers_that_begin(WORKLOADS, incomplete)


def offer_samples(incomplete: str) -> Offers:
    """Return the designs of samples that begin so."""
    return _offers_that_begin(SAMPLES, incomplete)


CHOOSERS = (
    ("plan", "by public sizes: every error is known beforehand"),
    ("data", "a private choice, and a model of the rest"),
    ("best", "whichever public numbers favour"),
)


def offer_choosers(incomplete: str) -> Offers:
    """Return the ways to choose tables that begin so."""
    return _offers_that_begin(CHOOSERS, incomplete)


MECHANISM_NAMES = (
    "adaptive_grid",
    "ahp",
    "chosen_tables",
    "contingency",
    "dawa",
    "efpa",
    "gaussian",
    "hierarchical_kd_tree",
    "hierarchy",
    "hybrid_tree",
    "kd_tree",
    "kmeans",
    "laplace",
    "matching",
    "mwem",
    "nested",
    "noise_first",
    "ordered",
    "ordered_hierarchical",
    "php",
    "privelet",
    "quad_tree",
    "structure_first",
    "transformed",
    "uniform_grid",
)
"""The mechanisms that the shell offers after ``--mechanism``. They are listed here, and
a test holds the list against the registry: to load it takes longer than anybody waits
for Tab. Mechanisms that list heavy cells are left out; no command uses them.
"""


def offer_mechanisms(incomplete: str) -> Offers:
    """Return the mechanisms that begin so."""
    return _offers_that_begin(((name, "") for name in MECHANISM_NAMES), incomplete)


def _offers_that_begin(offers: Iterable[tuple[str, str]], incomplete: str) -> Offers:
    return [offer for offer in offers if offer[0].startswith(incomplete)]


Json = Annotated[bool, typer.Option("--json", help="Print plain JSON.")]
Cells = Annotated[
    list[str],
    typer.Option(
        "--cells",
        "--domain",
        metavar="CELLS",
        help="The cells: 4096, 64x64, age=0:101:1, sex=categories:f,m, ...; repeated "
        "for each column.",
    ),
]
POLICY: Any = {
    "metavar": "POLICY",
    "help": f"What stays indistinguishable: {POLICY_FORMS}.",
    "autocompletion": offer_policies,
}
WORKLOAD: Any = {
    "metavar": "WORKLOAD",
    "help": f"What will be asked; identity if nothing is said: {WORKLOAD_FORMS}.",
    "autocompletion": offer_workloads,
}
SAMPLE: Any = {
    "metavar": "DESIGN",
    # Brackets of help pages are markup, unless they are escaped.
    "help": "How the records were drawn, on your word: "
    + SAMPLE_FORMS.replace("[", "\\[")
    + ".",
    "autocompletion": offer_samples,
}
SampleWords = Annotated[str | None, typer.Option("--sample", **SAMPLE)]
PolicyWords = Annotated[str, typer.Option("--policy", **POLICY)]
WorkloadWords = Annotated[str, typer.Option("--workload", **WORKLOAD)]
Mechanisms = Annotated[
    list[str] | None,
    typer.Option(
        "--mechanism",
        metavar="NAME",
        help="Only this one; package:Class for one of your own; may be repeated.",
        autocompletion=offer_mechanisms,
    ),
]
DATA, PRIVACY, OUTPUT = "Data", "Privacy and accuracy", "Output"
ReleaseFile = Annotated[
    Path,
    typer.Argument(metavar="RELEASE", help="The file of a release."),
]
JobFile = Annotated[
    Path | None,
    typer.Argument(
        metavar="JOB",
        help="A job file (TOML); flags override it. See blowfish release --example.",
    ),
]
Confidence = Annotated[
    float, typer.Option(metavar="PART", help="Confidence of each interval.")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace files.")]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Check everything and say what it would cost: nothing is read, charged or "
        "written.",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        metavar="NUMBER",
        min=0,
        help="Same noise again: an experiment, which protects nobody.",
        rich_help_panel=PRIVACY,
    ),
]
PER_COLUMN = (
    "age=cell,town=refuse for some columns, cell,town=refuse for one and all others."
)
"""How rules for missing values and values outside are stated for each column."""
Treatment = Annotated[
    str | None,
    typer.Option(
        metavar="RULE",
        help=f"cell: such values have a cell of their own; {PER_COLUMN}",
    ),
]
Picture = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Draw it: .png, .svg or .pdf.")
]
Top = Annotated[int, typer.Option(metavar="NUMBER", help="Lines of the table.", min=1)]


def option(
    metavar: str | None,
    help_text: str,
    *names: str,
    default: Any = None,
    typed: Any = None,
    table: str | None = None,
    called: str | None = None,
    **more: Any,
) -> Any:
    """Return a field of a dataclass that is an option of a command.

    Parameters
    ----------
    metavar : str or None
        What ``--help`` calls the value; None for a switch.
    help_text : str
        What ``--help`` says.
    *names : str
        How the option is typed, where that is not the field's name.
    default : object
        [] if the option may be repeated.
    typed : type, optional
        What is typed, where the field may hold more than that.
    table : str, optional
        The table of a job file that states it.
    called : str, optional
        Its name there, where that is not the field's.
    **more : object
        Further arguments of ``typer.Option``, whose words they are.

    Returns
    -------
    dataclass field
        It carries the option in its metadata; `with_options` reads it there.
    """
    typer_option = typer.Option(*names, metavar=metavar, help=help_text, **more)
    about = {"option": typer_option, "typed": typed, "metavar": metavar}
    about |= {"table": table, "called": called}
    if default == []:
        return field(default_factory=list, metadata=about)
    return field(default=default, metadata=about)


@dataclass(frozen=True)
class Selected:
    """Records and what is asked of them, in words that are not read yet."""

    ranges: list[str] = option(
        "LOW:HIGH",
        "Count from LOW up to, without, HIGH; on several columns LOW:HIGH,LOW:HIGH. "
        "May be repeated.",
        "--range",
        default=[],
    )
    file: Path | None = option(
        "FILE",
        "CSV, a query per line: columns NAME_from and NAME_to, or NAME for one value; "
        "from and to for a single column.",
        "--ranges",
    )
    where: list[str] = option(
        "CONDITION",
        "age=20:40 or town=Bern,Chur; of several, all must hold.",
        default=[],
    )
    sum_of: str | None = option("COLUMN", "Sum a column.", "--sum")
    mean_of: str | None = option("COLUMN", "Mean of a column.", "--mean")
    std_of: str | None = option("COLUMN", "Standard deviation of a column.", "--std")
    by: list[str] = option(
        "COLUMN",
        "Break down by the cells of a column, by edges: age=0,18,65,101, by a level of "
        "nested districts, or by polygons: tracts.geojson:GEOID.",
        default=[],
    )
    quantiles: list[float] = option(
        "PART",
        "Where this part of the records is reached; 0.5 is the median. --of: of what.",
        "--quantile",
        default=[],
    )
    of: list[str] = option(
        "COLUMN", "Of which column, where there are several.", default=[]
    )

    @property
    def quantile_of(self) -> str | None:
        """The column whose quantiles are asked for; None where none is named."""
        return _only_column(self.of)


def _only_column(words: list[str]) -> str | None:
    if len(words) > 1:
        raise InputError(
            "quantiles are those of one column", received=f"--of {' --of '.join(words)}"
        )
    return words[0] if words else None


POPULATION = "population"


@dataclass(frozen=True)
class Question(Selected):
    """What ``blowfish answer`` is asked, in words that are not read yet."""

    of: list[str] = option(
        "COLUMN",
        "Of which column, where there are several; population: answers and intervals "
        "of what the records were drawn from, over sampling and noise.",
        default=[],
    )
    share: bool = option(
        None, "The part of all records that is selected.", "--share", default=False
    )
    method: str | None = option(
        "METHOD",
        "With --of population: exact, by the law of the sample, or normal; exact "
        "where there is such a law.",
    )
    count: bool = option(
        None, "Count the records; this is the default.", "--count", default=False
    )
    per: list[str] = option(
        "CONDITION",
        "With --of population: divide by how many meet this instead, a rate, as "
        "--where work=looking --per work=looking,employed.",
        default=[],
    )
    minus: list[str] = option(
        "CONDITION",
        "With --of population: take off those who meet this instead, as --where F "
        "--minus M; interval and p-value of the difference. Conditions of --where on "
        "other columns hold for both.",
        default=[],
    )
    against: str | None = option(
        "NUMBER",
        "With --of population: the p-value of each answer against a number that was "
        "stated before, as --share --against 0.08; of a difference instead of 0.",
    )
    workload: str | None = option(
        "WORKLOAD",
        "Queries in words: identity, prefixes, ranges:FILE, ...",
        autocompletion=offer_workloads,
    )

    @property
    def in_population(self) -> bool:
        """Whether it is about the population that the records were drawn from."""
        return POPULATION in self.of

    @property
    def quantile_of(self) -> str | None:
        """The column whose quantiles are asked for; None where none is named."""
        return _only_column([word for word in self.of if word != POPULATION])

    @property
    def anything(self) -> bool:
        """Whether there is a question at all."""
        return bool(self.ranges or self.file or self.workload) or self.selects

    @property
    def selects(self) -> bool:
        """Whether records are selected and measured."""
        measured = [self.sum_of, self.mean_of, self.std_of, self.quantile_of]
        chosen = self.where or self.by or self.count or self.share or self.quantiles
        return bool(chosen or self.minus or self.per) or any(measured)


@dataclass(frozen=True)
class Together:
    """Which epochs of a series are asked, or which releases together."""

    upto: str | None = option(
        "EPOCH", "Of a series: the last epoch that is counted (the latest)."
    )
    last: int | None = option(
        "NUMBER",
        "Of a series: count so many epochs, 1 for one; else the running total.",
        min=1,
    )
    others: list[Path] = option(
        "RELEASE",
        "Ask this release together with the first; may be repeated.",
        "--with",
        default=[],
    )
    how: str | None = option(
        "WORD",
        "With --with: average (the same people, both releases of them), sum, disjoint "
        "(a sum of different people), or difference; with --of population that of two "
        "samples of different people, with a p-value.",
    )


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command whose dataclass parameters are spread into their fields.

    Parameters
    ----------
    command : callable
        A function, some of whose parameters are dataclasses of options.

    Returns
    -------
    callable
        The same function for typer, which sees each field as a parameter of its
        own.
    """
    hints = get_type_hints(command, include_extras=True)
    parameters: list[inspect.Parameter] = []
    spread: dict[str, Any] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        if is_dataclass(hints[name]):
            spread[name] = hints[name]
            parameters += _parameters(hints[name])
        else:
            kind = inspect.Parameter.KEYWORD_ONLY
            parameters.append(parameter.replace(kind=kind, annotation=hints[name]))

    @functools.wraps(command)
    def spread_command(**values: Any) -> None:
        for name, kind in spread.items():
            own = {entry.name: values.pop(entry.name, None) for entry in fields(kind)}
            # What was not typed keeps the default of the dataclass.
            typed = {field: value for field, value in own.items() if value is not None}
            values[name] = kind(**typed)
        command(**values)

    spread_command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    spread_command.__annotations__ = {
        parameter.name: parameter.annotation for parameter in parameters
    }
    return spread_command


def look_here_for(mechanisms: list[str] | None) -> None:
    """Let ``package:Class`` name a module of the folder in which a command runs."""
    here = str(Path.cwd())
    if any(":" in name for name in mechanisms or ()) and here not in sys.path:
        sys.path.insert(0, here)


def names_a_file(words: str) -> bool:
    """Return whether words look like the name of a file of numbers."""
    return Path(words).suffix.lower() in SUFFIXES


def refuse_existing(*paths: Path | None, overwrite: bool) -> None:
    """Refuse to write over files that are there, unless that is allowed.

    Parameters
    ----------
    *paths : Path or None
        The files that would be written.
    overwrite : bool
        Whether that is allowed.

    Raises
    ------
    InputError
        If one of them exists and it is not allowed.
    """
    for path in paths:
        if path is not None and path.exists() and not overwrite:
            raise InputError(
                f"{path} exists already; allow --overwrite, or choose another name"
            )


def _parameters(kind: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    parameters = []
    for entry in fields(kind):
        hint, default = hints[entry.name], entry.default
        if "option" in entry.metadata:
            typed = entry.metadata["typed"] or hint
            hint = Annotated[typed, entry.metadata["option"]]
        if entry.default_factory is not MISSING:
            default = None
        elif default is MISSING:
            default = inspect.Parameter.empty
        where = inspect.Parameter.KEYWORD_ONLY
        parameters.append(
            inspect.Parameter(entry.name, where, default=default, annotation=hint)
        )
    return parameters
