"""A release stated once: its options, and the small TOML file that may hold them.

    [data]       source, table, count_column, missing, outside, encoding, decimal,
                 dates, blanks; person, record, at_most, count
    [domain]     a line per column, or cells = "64x64"
    [ledger_domain]  all columns of a new ledger, as in [domain]
    [policy]     kind, with theta, unit, metric, size, file or factors; known
    [workload]   kind, with number, file or columns
    [mechanism]  name ("best" if left out), records
    [budget]     epsilon, rho, epsilon and delta, or alpha and beta; ledger, total,
                 request
    [output]     release, table, picture, confidence

Each field of `Job` is an option of ``blowfish release`` and has its place in the file;
options override the file. Files are looked for beside the job file. Unknown names are
refused, with the nearest known one: a misspelt policy must not become no policy.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Self, get_type_hints

import typer

from blowfish_fast.apps.cli import completions
from blowfish_fast.errors import InputError
from blowfish_fast.measure.budgets import Budget, BudgetTerms, stated_budget

from .job_tables import (
    are_texts,
    beside,
    domain_words,
    policy_words,
    workload_words,
)
from .spelling import nearest

BEST = "best"
ON_QUERIES = "queries"
"""What tables call noise on the stated queries themselves."""
DATA, PRIVACY, OUTPUT = "Data", "Privacy and accuracy", "Output"
"""Panels of the help page."""

TEXT, NUMBER, WHOLE, TEXTS, RULES = (
    "a text",
    "a number",
    "a whole number",
    "a list of texts",
    "a text, or a table from columns to texts",
)


class Place(NamedTuple):
    """Where a job file states an option: ``[table] name``, and what it takes there."""

    table: str
    name: str
    takes: str = TEXT
    names_file: bool = False


def _option(panel: str, metavar: str, help_text: str, *names: str, **more: Any) -> Any:
    return typer.Option(
        *names, metavar=metavar, help=help_text, rich_help_panel=panel, **more
    )


@dataclass(frozen=True)
class Job:
    """A release as it was stated; None where nothing was said."""

    data: Annotated[
        str | None,
        _option(
            DATA,
            "FILE",
            ".csv (.csv.gz, .tsv, .txt), .parquet, .npy (counts), .duckdb, .sqlite, an "
            "address such as postgres://..., or demo.",
        ),
        Place("data", "source", names_file=True),
    ] = None
    data_table: Annotated[
        str | None,
        _option(DATA, "NAME", "Table of a database."),
        Place("data", "table"),
    ] = None
    count_column: Annotated[
        str | None,
        _option(DATA, "COLUMN", "Column with the number of records a line stands for."),
        Place("data", "count_column"),
    ] = None
    person: Annotated[
        str | None,
        _option(
            DATA,
            "COLUMN",
            "Whose record a line is: she is protected with all her records.",
        ),
        Place("data", "person"),
    ] = None
    record: Annotated[
        str | None,
        _option(DATA, "COLUMN", "Which of a person's records it is; no value of it."),
        Place("data", "record"),
    ] = None
    at_most: Annotated[
        int | None,
        _option(DATA, "NUMBER", "Most records of a person that are counted."),
        Place("data", "at_most", WHOLE),
    ] = None
    count: Annotated[
        str | None,
        _option(DATA, "RULE", "Each person once: persons; or records (default)."),
        Place("data", "count"),
    ] = None
    domain: Annotated[
        list[str] | None,
        _option(
            DATA,
            "CELLS",
            "The cells: age=0:101:1, sex=categories:f,m, day=FROM:TO:month, 4096, "
            "64x64; one per column.",
            "--domain",
            "--cells",
        ),
    ] = None
    missing: Annotated[
        str | Mapping[str, str] | None,
        str | None,
        _option(
            DATA,
            "RULE",
            "Missing values: refuse (default), clamp, or cell of their own; age=cell "
            "for one column.",
        ),
        Place("data", "missing", RULES),
    ] = None
    outside: Annotated[
        str | Mapping[str, str] | None,
        str | None,
        _option(
            DATA, "RULE", "Values outside the domain: refuse (default), clamp or cell."
        ),
        Place("data", "outside", RULES),
    ] = None
    encoding: Annotated[
        str | None,
        _option(DATA, "NAME", "Of a CSV file that is not in UTF-8: cp1252, latin-1."),
        Place("data", "encoding"),
    ] = None
    decimal: Annotated[
        str | None,
        _option(
            DATA,
            "MARK",
            '"," where a CSV file writes 1.234,5; "." where it writes 1,234.5.',
        ),
        Place("data", "decimal"),
    ] = None
    dates: Annotated[
        str | None,
        _option(
            DATA,
            "FORM",
            "How a CSV file writes dates: DD.MM.YYYY, MM/DD/YYYY, YYYYMMDD; by default "
            "YYYY-MM-DD.",
        ),
        Place("data", "dates"),
    ] = None
    blanks: Annotated[
        list[str] | None,
        _option(
            DATA,
            "WORD",
            "One more spelling of missing in a CSV file, as in --blank=-; repeated for "
            "each.",
            "--blank",
        ),
        Place("data", "blanks", TEXTS),
    ] = None
    policy: Annotated[
        str | None,
        _option(
            PRIVACY,
            "POLICY",
            "What stays indistinguishable; no default: full, add_remove, line, "
            "attribute, threshold:5, threshold:5000:value, blocks:10, blocks:FILE, "
            "graph:FILE, product:line,full; full+known:sex where totals are public.",
            autocompletion=completions.policies,
        ),
    ] = None
    workload: Annotated[
        str | None,
        _option(
            PRIVACY,
            "WORKLOAD",
            "What will be asked: identity, prefixes, all_ranges, total, ranges:2000, "
            "rectangles:FILE, marginals:age,sex.",
            autocompletion=completions.workloads,
        ),
    ] = None
    epsilon: Annotated[
        str | None,
        _option(PRIVACY, "NUMBER", "What may be spent."),
        Place("budget", "epsilon", NUMBER),
    ] = None
    rho: Annotated[
        str | None,
        _option(PRIVACY, "NUMBER", "Or in rho: Gaussian noise (zCDP)."),
        Place("budget", "rho", NUMBER),
    ] = None
    delta: Annotated[
        str | None,
        _option(
            PRIVACY, "NUMBER", "With --epsilon: the largest rho that implies both."
        ),
        Place("budget", "delta", NUMBER),
    ] = None
    alpha: Annotated[
        str | None,
        _option(
            PRIVACY, "NUMBER", "Instead: the largest error; the least epsilon is found."
        ),
        Place("budget", "alpha", NUMBER),
    ] = None
    beta: Annotated[
        str | None,
        _option(PRIVACY, "PART", "Probability of exceeding it."),
        Place("budget", "beta", NUMBER),
    ] = None
    mechanism: Annotated[
        str | None,
        _option(
            PRIVACY,
            "NAME",
            'A name, or "best" (default): chosen from public facts.',
            autocompletion=completions.mechanisms,
        ),
        Place("mechanism", "name"),
    ] = None
    records: Annotated[
        int | None,
        _option(
            PRIVACY,
            "NUMBER",
            'Roughly how many, a public guess: "best" then also tries mechanisms that '
            "adapt to the data.",
        ),
        Place("mechanism", "records", WHOLE),
    ] = None
    ledger: Annotated[
        str | None,
        _option(PRIVACY, "FILE", "Ledger that is charged."),
        Place("budget", "ledger", names_file=True),
    ] = None
    total: Annotated[
        str | None,
        _option(
            PRIVACY,
            "NUMBER",
            "Whole budget of a ledger that is not there yet.",
            "--budget",
        ),
        Place("budget", "total", NUMBER),
    ] = None
    ledger_domain: Annotated[
        list[str] | None,
        _option(
            PRIVACY,
            "CELLS",
            "All columns of a new ledger, of which a release takes some; as --domain, "
            "one per column.",
        ),
    ] = None
    request: Annotated[
        str | None,
        _option(
            PRIVACY, "NAME", "Name of this question: asked again, it costs nothing."
        ),
        Place("budget", "request"),
    ] = None
    release: Annotated[
        str | None,
        _option(OUTPUT, "FILE", "File of the release (release.blowfish).", "--out"),
        Place("output", "release", names_file=True),
    ] = None
    table: Annotated[
        str | None,
        _option(
            OUTPUT, "FILE", "A line per cell with intervals: .csv, .parquet or .json."
        ),
        Place("output", "table", names_file=True),
    ] = None
    picture: Annotated[
        str | None,
        _option(OUTPUT, "FILE", "A picture: .png, .svg or .pdf."),
        Place("output", "picture", names_file=True),
    ] = None
    confidence: Annotated[
        float | None,
        _option(OUTPUT, "PART", "Of the intervals (0.95)."),
        Place("output", "confidence", NUMBER),
    ] = None

    @classmethod
    def from_file(cls, path: Path) -> Self:
        """Read a job file; names in it are looked for beside it."""
        import tomllib

        try:
            stated = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        except FileNotFoundError:
            raise InputError(
                f"there is no job file {path}; `blowfish release --example` prints one"
            ) from None
        except UnicodeDecodeError:
            raise InputError(
                f"{path} is no TOML file: it is not written in UTF-8; save it in that "
                "encoding"
            ) from None
        except (tomllib.TOMLDecodeError, RecursionError) as problem:
            raise InputError(
                f"{path} is no TOML file: {problem}; `blowfish release --example` "
                "prints one"
            ) from None
        except OSError as problem:
            raise InputError(f"{path} cannot be read: {problem.strerror}") from None
        return cls.from_dict(stated, path.parent)

    @classmethod
    def from_dict(cls, stated: Mapping[str, Any], folder: Path = Path()) -> Self:
        """Read what a TOML file states.

        Examples
        --------
        >>> Job.from_dict({"policy": {"kind": "threshold", "theta": 5}}).policy
        'threshold:5'
        """
        _check_names(stated)
        found: dict[str, Any] = {
            "domain": domain_words(stated.get("domain", {}), folder),
            "ledger_domain": domain_words(stated.get("ledger_domain", {}), folder),
            "policy": policy_words(stated.get("policy", {}), folder),
            "workload": workload_words(stated.get("workload", {}), folder),
        }
        for field, place in PLACES.items():
            value = stated.get(place.table, {}).get(place.name)
            if value is not None and place.names_file:
                value = beside(folder, value)
            elif value is not None and place.takes == NUMBER and field != "confidence":
                # As text, which keeps 0.1 exact.
                value = str(value)
            found[field] = value
        return cls(**found)

    @property
    def budget(self) -> Budget | None:
        """What may be spent, where it is stated: in epsilon or in rho."""
        return stated_budget(
            {"epsilon": self.epsilon, "rho": self.rho, "delta": self.delta}
        )

    @property
    def ledger_terms(self) -> BudgetTerms:
        """The whole budget of a ledger that the job makes, in the job's currency."""
        if self.rho is not None:
            return {"rho": self.total}
        return {"epsilon": self.total, "delta": self.delta}

    def overridden(self, typed: Self) -> Self:
        """Return the job with what was typed instead; None leaves it as it is."""
        given = {
            one.name: getattr(typed, one.name)
            for one in fields(typed)
            if getattr(typed, one.name) not in (None, [])
        }
        changed: dict[str, Any] = {}
        # Epsilon and accuracy are two ways to say one thing: the option's way holds.
        if "epsilon" in given or "rho" in given:
            changed.update(alpha=None, beta=None)
            changed.update(epsilon=None, rho=None, delta=None)
        if "alpha" in given or "beta" in given:
            changed.update(epsilon=None, rho=None, delta=None)
        if "data" in given:
            changed.update(data_table=None)
        return replace(self, **changed | given)

    @property
    def shown_data(self) -> str | None:
        """Where the data is, without the password of an address."""
        if self.data is None or "://" not in self.data:
            return self.data
        return re.sub(r"(://[^:/@]*):[^@/]*@", r"\1:***@", self.data)

    def to_dict(self) -> dict[str, Any]:
        """Return what was stated, as plain data; no password is among it."""
        found = {one.name: getattr(self, one.name) for one in fields(self)}
        found["data"] = self.shown_data
        return {name: one for name, one in found.items() if one not in (None, [])}


PLACES = {
    field: place
    for field, hint in get_type_hints(Job, include_extras=True).items()
    for place in getattr(hint, "__metadata__", ())
    if isinstance(place, Place)
}
"""Fields of a job that stand in the file as they are."""
KNOWN: dict[str, dict[str, str]] = {
    "data": {},
    "domain": {},
    "ledger_domain": {},
    "policy": {
        "kind": TEXT,
        "theta": NUMBER,
        "unit": TEXT,
        "metric": TEXT,
        "size": WHOLE,
        "file": TEXT,
        "factors": TEXTS,
        "known": TEXTS,
    },
    "workload": {"kind": TEXT, "number": WHOLE, "file": TEXT, "columns": TEXTS},
    "mechanism": {},
    "budget": {},
    "output": {},
}
"""Every table of a job file, its names, and what each takes."""
for _place in PLACES.values():
    KNOWN[_place.table][_place.name] = _place.takes


def _check_names(stated: Mapping[str, Any]) -> None:
    for table, content in stated.items():
        if table not in KNOWN:
            raise InputError(
                f"a job file has no table [{table}]{nearest(table, KNOWN)}; its tables "
                f"are {', '.join(KNOWN)}"
            )
        if not isinstance(content, Mapping):
            raise InputError(
                f"[{table}] of a job file is a table; received {content!r}"
            )
        for name, value in content.items():
            if table not in ("domain", "ledger_domain"):
                _check_value(table, name, value)


def _check_value(table: str, name: str, value: Any) -> None:
    known = KNOWN[table]
    if name not in known:
        raise InputError(
            f"[{table}] has no {name!r}{nearest(name, known)}; it takes "
            f"{', '.join(known)}"
        )
    number = isinstance(value, int | float) and not isinstance(value, bool)
    fits = {
        TEXT: isinstance(value, str),
        NUMBER: number,
        WHOLE: number and isinstance(value, int),
        TEXTS: are_texts(value),
        RULES: isinstance(value, str)
        or (isinstance(value, Mapping) and are_texts(list(value.values()))),
    }[known[name]]
    if not fits:
        raise InputError(f"{name!r} of [{table}] is {known[name]}; received {value!r}")
