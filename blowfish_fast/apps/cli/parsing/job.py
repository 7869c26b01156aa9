"""A release stated once: its options, and the small TOML file that may hold them.

Options override the file; files are looked for beside it. Unknown names are refused,
with the nearest known one: a misspelt policy must not become no policy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Self, get_args, get_type_hints

from blowfish_fast.apps.cli.options import (
    DATA,
    OUTPUT,
    PER_COLUMN,
    POLICY,
    PRIVACY,
    SAMPLE,
    WORKLOAD,
    offer_choosers,
    offer_mechanisms,
    option,
)
from blowfish_fast.apps.description.columns import described_treatments
from blowfish_fast.apps.description.shipped import key_text
from blowfish_fast.errors import InputError, nearest

from .file_lines import Key, at_line, key_lines
from .job_words import (
    are_texts,
    beside,
    domain_words,
    is_number,
    policy_words,
    workload_words,
)
from .sample_table import sample_words

if TYPE_CHECKING:
    from blowfish_fast.measure.budgets import Budget, BudgetTerms

BEST = "best"
EXAMPLE = "`blowfish release --example` prints one"
ON_QUERIES = "queries"
"""What tables call noise on the stated queries themselves."""
PANELS = {"data": DATA, "domain": DATA, "sample": DATA, "output": OUTPUT}
"""Panel of the options that a table of the job file holds; else `PRIVACY`."""


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_whole(value: Any) -> bool:
    return is_number(value) and isinstance(value, int)


def _is_truth(value: Any) -> bool:
    return isinstance(value, bool)


def _is_several(value: Any) -> bool:
    return _is_text(value) or (are_texts(value) and len(value) > 0)


def _are_rules(value: Any) -> bool:
    by_column = isinstance(value, Mapping) and are_texts([*value.values()])
    return _is_text(value) or by_column


def _are_people(value: Any) -> bool:
    by_level = isinstance(value, Mapping) and all(map(_is_whole, value.values()))
    return _is_whole(value) or by_level


def _are_numbers(value: Any) -> bool:
    return isinstance(value, list) and len(value) > 0 and all(map(is_number, value))


def _is_distance(value: Any) -> bool:
    return _is_truth(value) or is_number(value)


TEXT = "a text"
NUMBER = "a number"
WHOLE = "a whole number"
TRUTH = "true or false"
TEXTS = "a list of texts"
SEVERAL = "a text, or a list of texts"
RULES = "a text, or a table from columns to texts"
HOW_FAR = "true, false or a number"
PEOPLE = "a whole number, or a table from levels to whole numbers"
NUMBERS = "a list of numbers"
TAKES: dict[str, Callable[[Any], bool]] = {
    TEXT: _is_text,
    NUMBER: is_number,
    WHOLE: _is_whole,
    TRUTH: _is_truth,
    TEXTS: are_texts,
    SEVERAL: _is_several,
    RULES: _are_rules,
    HOW_FAR: _is_distance,
    PEOPLE: _are_people,
    NUMBERS: _are_numbers,
}
"""Whether a value is what a name of a job file takes, by the words of messages."""
BY_TYPE = {
    int: WHOLE,
    float: NUMBER,
    bool: TRUTH,
    list[str]: TEXTS,
    Mapping[str, str]: RULES,
}
"""What the file takes for a field of `Job`, by its type; others take a text."""


class Place(NamedTuple):
    """Where a job file states an option: ``[table] name``, and what it takes there.

    Attributes
    ----------
    table : str
        The heading in the file, without brackets.
    name : str
        The name below that heading.
    takes : str
        What stands behind the name, in the words of messages; a key of `TAKES`.
    names_file : bool
        Whether the value is the name of a file, which is looked for beside the job
        file.
    """

    table: str
    name: str
    takes: str
    names_file: bool


def _in(table: str, metavar: str | None, help: str, *names: str, **more: Any) -> Any:
    """Return an option that the job file states in `table`."""
    more |= {"table": table, "rich_help_panel": PANELS.get(table, PRIVACY)}
    return option(metavar, help, *names, **more)


@dataclass(frozen=True)
class Job:
    """A release as it was stated; None where nothing was said."""

    data: str | None = _in(
        "data",
        "FILE",
        ".csv (.csv.gz, .tsv, .txt), .xlsx (FILE.xlsx#SHEET), .parquet, .npy (counts), "
        ".duckdb, .sqlite, an address such as postgres://..., or demo.",
        called="source",
    )
    data_table: str | None = _in("data", "NAME", "Table, or sheet.", called="table")
    description: str | None = _in(
        "data",
        "FILE",
        "JSON: the table as `serve --tables` takes it, with columns, policy and "
        "persons; --data-table names one of several.",
    )
    count_column: str | None = _in(
        "data", "COLUMN", "Column with the number of records a line stands for."
    )
    person: str | None = _in(
        "data",
        "COLUMN",
        "Whose record a line is: she is protected with all her records.",
    )
    record: str | None = _in(
        "data", "COLUMN", "Which of a person's records it is; no value of it."
    )
    at_most: int | None = _in(
        "data", "NUMBER", "Most records of a person that are counted."
    )
    count: str | None = _in(
        "data", "RULE", "Each person once: persons; or records (default)."
    )
    series: str | None = _in(
        "data",
        "COLUMN:EVERY:EPOCH",
        "Only what arrived in one epoch, as in received:week:2026-W46; a ledger "
        "charges the dearest epoch, once.",
    )
    totals: bool | None = _in(
        "data",
        None,
        "Of a series: keep running totals accurate; a record counts in later releases, "
        "too, by its age.",
        "--totals",
    )
    exponent: str | None = _in(
        "data",
        "FRACTION",
        "With --totals in rho: from 0, best for single epochs, to 1/2, best for "
        "totals (3/8).",
    )
    band: int | None = _in(
        "data",
        "NUMBER",
        "With --totals: after how many epochs a record counts no more.",
    )
    frozen: bool | None = _in(
        "data",
        None,
        "Your word that records of closed epochs never change: intervals of totals "
        "then hold true counts.",
        "--frozen",
    )
    epochs_at_most: int | None = _in(
        "data",
        "NUMBER",
        "With --totals and --person: in how many epochs a person counts, her first.",
    )
    domain: list[str] | None = _in(
        "domain",
        "CELLS",
        "The cells: age=0:101:1, sex=categories:f,m, day=FROM:TO:month, 4096, 64x64; "
        "one per column.",
        "--domain",
        "--cells",
    )
    missing: str | Mapping[str, str] | None = _in(
        "data",
        "RULE",
        "Missing values: refuse (default), clamp into the first cell, or cell of "
        f"their own; {PER_COLUMN}",
        typed=str | None,
    )
    outside: str | Mapping[str, str] | None = _in(
        "data",
        "RULE",
        "Values outside the domain: refuse (default), clamp numbers and dates into "
        "the end cells and points into the nearest district, or cell of their own; "
        f"{PER_COLUMN}",
        typed=str | None,
    )
    encoding: str | None = _in(
        "data", "NAME", "Of a CSV file that is not in UTF-8: cp1252, latin-1."
    )
    decimal: str | None = _in(
        "data", "MARK", '"," where a CSV file writes 1.234,5; "." where 1,234.5.'
    )
    dates: str | None = _in(
        "data",
        "FORM",
        "How a CSV file writes dates: DD.MM.YYYY, MM/DD/YYYY, YYYYMMDD; by default "
        "YYYY-MM-DD. In several ways: 'DD.MM.YYYY or YYYY-MM-DD'.",
    )
    blanks: list[str] | None = _in(
        "data",
        "WORD",
        "One more spelling of missing in a CSV file, as in --blank=-; repeated for "
        "each.",
        "--blank",
    )
    sample: str | None = _in("sample", **SAMPLE)
    policy: str | None = _in("policy", **POLICY)
    workload: str | None = _in("workload", **WORKLOAD)
    choose: str | None = _in(
        "workload",
        "RULE",
        "Which tables are measured: plan (default), by public sizes; data, a private "
        "choice; best, whichever public numbers favour (--records).",
        autocompletion=offer_choosers,
    )
    prior: str | None = _in(
        "workload",
        "FILE",
        "With --choose data or best: a release of the same tables of another survey, "
        "as last year's; the choice then looks for what differs.",
    )
    always: list[str] | None = _in(
        "workload",
        "TABLE",
        "With --choose data or best: a table that is measured whatever the data "
        "choose, as in 'age x sex'; repeated for each.",
    )
    rounds: int | None = _in(
        "workload",
        "NUMBER",
        "With --choose data or best: how many tables are chosen; by default public "
        "numbers say it.",
    )
    model_cells: int | None = _in(
        "workload",
        "NUMBER",
        "With --choose data or best: cells of the model of all tables, at most "
        "(131072).",
    )
    epsilon: str | None = _in("budget", "NUMBER", key_text("StatedBudget", "epsilon"))
    rho: str | None = _in("budget", "NUMBER", key_text("StatedBudget", "rho"))
    delta: str | None = _in(
        "budget",
        "NUMBER",
        f"{key_text('StatedBudget', 'delta')} With --alpha: in rho.",
    )
    alpha: str | None = _in(
        "budget", "NUMBER", "Instead: the largest error; the least epsilon is found."
    )
    beta: str | None = _in("budget", "PART", "Probability of exceeding it.")
    risk: str | None = _in(
        "budget",
        "BEFORE:AFTER",
        "Instead: how sure somebody may become, as in 0.1:0.3; the largest epsilon is "
        "found.",
    )
    mechanism: str | None = _in(
        "mechanism",
        "NAME",
        'A name, or "best" (default): chosen from public facts.',
        called="name",
        autocompletion=offer_mechanisms,
    )
    records: int | None = _in(
        "mechanism",
        "NUMBER",
        'Roughly how many, a public guess: "best" then also tries mechanisms that '
        "adapt to the data.",
    )
    false_cells: str | None = _in(
        "mechanism",
        "NUMBER",
        "Beyond 2^28 cells: how many empty ones a list of heavy cells holds in the "
        "mean (1); the threshold follows.",
    )
    vouched: bool | None = _in(
        "mechanism",
        None,
        "A mechanism of your own, package:Class: its privacy is proved.",
        "--vouched",
    )
    ledger: str | None = _in("budget", "FILE", "Ledger that is charged.")
    total: str | None = _in(
        "budget",
        "NUMBER",
        "Whole budget of a ledger that is not there yet.",
        "--budget",
    )
    ledger_domain: list[str] | None = _in(
        "ledger_domain",
        "CELLS",
        "All columns of a new ledger, of which a release takes some; as --domain, one "
        "per column.",
    )
    auditor: str | None = _in(
        "budget",
        "FILE",
        "Public key of whoever may check the ledger's noise later; it is remembered.",
    )
    certify: str | None = _in(
        "budget",
        "PART",
        "Part of the budget that buys a certificate: how far answers are off.",
    )
    request: str | None = _in(
        "budget", "NAME", "Name of this question: asked again, it costs nothing."
    )
    release: str | None = _in(
        "output", "FILE", "File of the release (release.blowfish).", "--out"
    )
    table: str | None = _in(
        "output",
        "FILE",
        "A line per cell: .csv, .xlsx, .parquet, .json; many tables: a folder, .xlsx.",
    )
    map: str | None = _in(
        "output",
        "FILE",
        "A map: .gpkg (with its style, for QGIS), .geojson, or .tif of a grid; --out "
        "map.gpkg writes it beside map.blowfish.",
    )
    map_system: str | None = _in(
        "output",
        "SYSTEM",
        "Reference system of a map of columns x and y, such as EPSG:2056.",
    )
    round: bool | None = _in(
        "output",
        None,
        "Publish whole counts, none negative, that add up to the same total.",
        "--round",
    )
    picture: str | None = _in("output", "FILE", "A picture: .png, .svg or .pdf.")
    report: str | None = _in("output", "FILE", "One page that tells all: .html.")
    synthetic: str | None = _in(
        "output",
        "FILE",
        "Made-up records that follow released tables: .csv, .xlsx, .parquet, .json.",
    )
    confidence: float | None = _in("output", "PART", "Of the intervals (0.95).")

    @classmethod
    def stated(cls, path: Path | None, typed: Self) -> Self:
        """Return what a file states, if there is one, and options override.

        Parameters
        ----------
        path : Path or None
            A job file, if one was named.
        typed : Job
            The options that were typed.

        Returns
        -------
        Job
            Both together; options win.
        """
        job = (cls() if path is None else cls.from_file(path)).overridden(typed)
        return job.with_description()

    @classmethod
    def from_file(cls, path: Path) -> Self:
        """Read a job file; names in it are looked for beside it."""
        import tomllib

        try:
            text = path.read_text(encoding="utf-8-sig")
            stated = tomllib.loads(text)
        except FileNotFoundError:
            why = f"there is no job file {path}; {EXAMPLE}"
        except (ValueError, RecursionError) as problem:
            unreadable = isinstance(problem, UnicodeDecodeError)
            what = "it is not written in UTF-8" if unreadable else problem
            way_out = EXAMPLE if path.suffix == ".toml" else "state a table with --data"
            why = f"{path} is no TOML file: {what}; {way_out}"
        except OSError as problem:
            why = f"{path} cannot be read: {problem.strerror}"
        else:
            return cls.from_dict(stated, path.parent, key_lines(text))
        raise InputError(why)

    @classmethod
    def from_dict(
        cls,
        stated: Mapping[str, Any],
        folder: Path = Path(),
        lines: Mapping[Key, int] = MappingProxyType({}),
    ) -> Self:
        """Read what a TOML file states.

        Parameters
        ----------
        stated : mapping
            The tables of the file.
        folder : Path
            Where the file is: names in it are looked for there.
        lines : mapping, optional
            The line of each key, for messages; see `key_lines`.

        Returns
        -------
        Job
            The job that it states.

        Raises
        ------
        InputError
            If a name or a value is wrong; the message lists all of them.
        """
        _check_names(stated, lines)
        terms: dict[str, Any] = {
            name: words(stated.get(name, {}), folder, lines)
            for name, words in IN_WORDS.items()
        }
        for field, place in PLACES.items():
            value = stated.get(place.table, {}).get(place.name)
            if value is not None and place.names_file:
                value = beside(folder, value)
            elif value is not None and place.takes == NUMBER and field != "confidence":
                # As text, which keeps 0.1 exact.
                value = str(value)
            terms[field] = value
        columns = stated.get("domain", {})
        for rule in ("missing", "outside"):
            terms[rule] = described_treatments(rule, terms[rule], columns)
        terms["policy"] = policy_words(stated, folder, lines)
        return cls(**terms)

    def with_description(self) -> Self:
        """Return the job with what the description of its table adds.

        Where the job states columns of its own, those of the description are all
        columns of its ledger.

        Raises
        ------
        InputError
            If the description cannot be read, or holds no table of that name.
        """
        if self.description is None:
            return self
        from blowfish_fast.apps.description.tables import job_of_table, read_description

        table = read_description(Path(self.description), self.data_table)
        described = type(self).from_dict(job_of_table(table))
        if self.domain and not self.ledger_domain:
            described = replace(described, domain=None, ledger_domain=described.domain)
        own = {
            entry.name: getattr(self, entry.name)
            for entry in fields(self)
            if getattr(self, entry.name) not in (None, [])
        }
        return replace(described, **own)

    @property
    def budget(self) -> Budget | None:
        """What may be spent, where it is stated: in epsilon or in rho."""
        from blowfish_fast.measure.budgets import optional_budget

        delta = self.delta if self.alpha is None else None
        return optional_budget(epsilon=self.epsilon, rho=self.rho, delta=delta)

    @property
    def ledger_terms(self) -> BudgetTerms:
        """The whole budget of a ledger that the job makes, in the job's currency."""
        if self.rho is not None:
            return {"rho": self.total}
        return {"epsilon": self.total, "delta": self.delta}

    def overridden(self, typed: Self) -> Self:
        """Return the job with what was typed instead; None leaves it as it is."""
        stated = {
            entry.name: getattr(typed, entry.name)
            for entry in fields(typed)
            if getattr(typed, entry.name) not in (None, [])
        }
        changed: dict[str, Any] = {}
        # Epsilon, risk and accuracy are ways to say one thing: the option's way holds.
        if {"epsilon", "rho", "risk"} & set(stated):
            changed.update(alpha=None, beta=None)
        if {"epsilon", "rho", "risk", "alpha", "beta"} & set(stated):
            changed.update(epsilon=None, rho=None, risk=None)
            if self.alpha is None or "alpha" in changed:
                changed.update(delta=None)
        if "data" in stated:
            changed.update(data_table=None)
        return replace(self, **changed | stated)

    @property
    def in_series(self) -> bool:
        """Whether anything is stated that is about a series."""
        terms = self.series, self.totals, self.exponent, self.band, self.frozen
        return any(term is not None for term in (*terms, self.epochs_at_most))

    @property
    def shown_data(self) -> str | None:
        """Where the data is, without a password."""
        if self.data is None or "://" not in self.data:
            return self.data
        return re.sub(r"(://[^:/@]*):[^@/]*@", r"\1:***@", self.data)

    def to_dict(self) -> dict[str, Any]:
        """Return what was stated, as plain data; no password is among it."""
        terms = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        terms["data"] = self.shown_data
        return {name: value for name, value in terms.items() if value not in (None, [])}


IN_WORDS = {
    "domain": domain_words,
    "ledger_domain": domain_words,
    "sample": sample_words,
    "workload": workload_words,
}
"""Fields that take the words of a whole table of the file."""
WORDED = {*IN_WORDS, "policy"}
"""These, and the policy, which two tables may state."""


def _places() -> dict[str, Place]:
    """Return the fields of a job that stand in the file as they are."""
    places, hints = {}, get_type_hints(Job)
    for entry in fields(Job):
        stated, metavar = entry.metadata, entry.metadata["metavar"]
        kinds = [kind for kind in get_args(hints[entry.name]) if kind in BY_TYPE]
        usual = NUMBER if metavar in ("NUMBER", "PART") else TEXT
        takes = BY_TYPE[kinds[0]] if kinds else usual
        name = stated["called"] or entry.name
        places[entry.name] = Place(stated["table"], name, takes, metavar == "FILE")
    return {name: place for name, place in places.items() if name not in WORDED}


PLACES = _places()
BY_COLUMN = ("domain", "ledger_domain", "policies")
"""Tables whose names are those of columns."""
KNOWN: dict[str, dict[str, str]] = {
    "domain": {},
    "ledger_domain": {},
    "policy": {"kind": TEXT, "theta": NUMBER, "unit": TEXT, "metric": TEXT}
    | {"size": WHOLE, "file": TEXT, "factors": TEXTS, "columns": RULES}
    | {"known": TEXTS, "presence": HOW_FAR},
    "policies": {},
    "sample": {"drawn": TEXT, "population": PEOPLE, "replacement": TRUTH}
    | {"rate": NUMBER, "column": TEXT, "weights": NUMBERS}
    | {"trimmed": NUMBERS, "people": NUMBERS},
    "workload": {"kind": SEVERAL, "number": WHOLE, "ways": WHOLE}
    | {"file": TEXT, "columns": TEXTS},
}
"""Every table of a job file, its names, and what each takes."""
for _place in PLACES.values():
    KNOWN.setdefault(_place.table, {})[_place.name] = _place.takes


def _check_names(stated: Mapping[str, Any], lines: Mapping[Key, int]) -> None:
    """Refuse names and values that no job file has, all of them at once."""
    problems = [*_odd_parts(stated, lines)]
    if problems:
        many = [f"{len(problems)} parts of the job file cannot be read:"]
        listed = problems if len(problems) == 1 else many + problems
        raise InputError("\n  ".join(listed))


def _odd_parts(stated: Mapping[str, Any], lines: Mapping[Key, int]) -> Iterator[str]:
    for table, content in stated.items():
        where = at_line(lines, table)
        if table not in KNOWN:
            yield (
                f"{where}a job file has no table [{table}]{nearest(table, KNOWN)}; its "
                f"tables are {', '.join(KNOWN)}"
            )
        elif not isinstance(content, Mapping):
            yield f"{where}[{table}] of a job file is a table; received {content!r}"
        elif table not in BY_COLUMN:
            names = KNOWN[table]
            for name, value in content.items():
                where = at_line(lines, table, name)
                if name not in names:
                    yield (
                        f"{where}[{table}] has no {name!r}{nearest(name, names)}; it "
                        f"takes {', '.join(names)}"
                    )
                elif not TAKES[names[name]](value):
                    yield (
                        f"{where}{name!r} of [{table}] is {names[name]}; received "
                        f"{value!r}"
                    )
