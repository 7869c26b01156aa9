"""A release stated once, in a small TOML file; flags override what it says.

    [data]       source, table, count_column, missing, outside, encoding, decimal,
                 dates, blanks
    [domain]     a line per column, or cells = "64x64"
    [policy]     kind, with theta, unit, metric, size, file or factors; known
    [workload]   kind, with number, file or columns
    [mechanism]  name ("best" if left out), records
    [budget]     epsilon, or alpha and beta; ledger, total, request
    [output]     release, table, picture, confidence

Files are looked for beside the job file. Unknown names are refused, with the nearest
known one: a misspelt policy must not become no policy.
"""

from __future__ import annotations

import datetime
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Self

from blowfish_fast.apps.cli.files.array_files import names_a_file
from blowfish_fast.apps.cli.files.demo_people import DEMO_NAME, DISTRICTS
from blowfish_fast.errors import InputError

from .words import KNOWN_TOTALS, nearest

BEST = "best"

TEXT, NUMBER, WHOLE, TEXTS, RULES = (
    "a text",
    "a number",
    "a whole number",
    "a list of texts",
    "a text, or a table from columns to texts",
)
KNOWN: dict[str, dict[str, str]] = {
    "data": {
        "source": TEXT,
        "table": TEXT,
        "count_column": TEXT,
        "missing": RULES,
        "outside": RULES,
        "encoding": TEXT,
        "decimal": TEXT,
        "dates": TEXT,
        "blanks": TEXTS,
    },
    "domain": {},
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
    "mechanism": {"name": TEXT, "records": WHOLE},
    "budget": {
        "epsilon": NUMBER,
        "alpha": NUMBER,
        "beta": NUMBER,
        "ledger": TEXT,
        "total": NUMBER,
        "request": TEXT,
    },
    "output": {"release": TEXT, "table": TEXT, "picture": TEXT, "confidence": NUMBER},
}
"""Every table of a job file, its names, and what each takes."""

EXAMPLE = f"""\
# A private release, stated once.
#   see what it would cost and promise:   blowfish release FILE --dry-run
#   release:                              blowfish release FILE

[data]
source = "{DEMO_NAME}.csv"    # .csv .parquet .npy .duckdb, or postgres://...
missing = "refuse"               # or "cell": a cell of their own; or "clamp"
outside = "clamp"                # into the end cells; or "cell", or "refuse"
# encoding = "cp1252"            # of a CSV file that is not written in UTF-8
# decimal = ","                  # numbers like 1.234,5
# dates = "DD.MM.YYYY"           # unless they read like 2024-05-31
# blanks = ["-", "n.a."]         # missing, beside empty and NA

[domain]                         # public: stated here, never read off the data
income = "0:120000:1000"         # from : to : width of a cell
# district = {list(DISTRICTS)!r}
# joined = "2020-01-01:2024-01-01:month"

[policy]                         # what must stay indistinguishable: no default
kind = "threshold"               # add_remove full line attribute blocks graph product
theta = 5000                     # two incomes at most 5000 apart ...
unit = "value"                   # ... measured by the domain; or "cells"
# known = ["district"]           # columns whose exact totals are public already

[workload]                       # what will be asked: noise is spent where it counts
kind = "ranges"                  # identity prefixes all_ranges rectangles marginals
number = 500

[mechanism]
name = "best"                    # by predicted error; or ordered, dawa, laplace, ...
# records = 10000                # a rough number; then "best" tries adaptive ones too

[budget]
epsilon = 0.5                    # or accuracy: alpha = 100 and beta = 0.05
ledger = "{DEMO_NAME}.ledger"
total = 2.0                      # of a ledger that does not exist yet
request = "incomes"              # asked again under this name, it costs nothing

[output]
release = "{DEMO_NAME}.blowfish"
table = "{DEMO_NAME}-released.csv"
picture = "{DEMO_NAME}.png"
"""


@dataclass(frozen=True)
class Job:
    """A release as it was stated; None where nothing was said.

    Attributes
    ----------
    data, data_table, count_column : str
        Where records or counts are.
    missing, outside : str or mapping
        What happens to stray values.
    encoding, decimal, dates, blanks : str, or tuple of str
        How the texts of a CSV file are written.
    domain : tuple of str
        A text per column, or one for cells without names.
    policy, workload, mechanism : str
        In words.
    records : int
        Roughly how many there are; public.
    epsilon, alpha, beta : str
        What may be spent, or which accuracy is wanted.
    ledger, request : str
        Who keeps count, and the name of this question.
    total : str
        Budget of a ledger that does not exist yet.
    release, table, picture : str
        Files to write.
    confidence : float
        Of intervals.
    """

    data: str | None = None
    data_table: str | None = None
    count_column: str | None = None
    missing: str | Mapping[str, str] | None = None
    outside: str | Mapping[str, str] | None = None
    encoding: str | None = None
    decimal: str | None = None
    dates: str | None = None
    blanks: tuple[str, ...] = ()
    domain: tuple[str, ...] = ()
    policy: str | None = None
    workload: str | None = None
    mechanism: str | None = None
    records: int | None = None
    epsilon: str | None = None
    alpha: str | None = None
    beta: str | None = None
    ledger: str | None = None
    total: str | None = None
    request: str | None = None
    release: str | None = None
    table: str | None = None
    picture: str | None = None
    confidence: float | None = None

    @classmethod
    def from_file(cls, path: Path) -> Self:
        """Read a job file; names in it are looked for beside it."""
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
        data, budget = stated.get("data", {}), stated.get("budget", {})
        choice, output = stated.get("mechanism", {}), stated.get("output", {})

        def beside(name: str | None) -> str | None:
            return None if name is None else _beside(folder, name)

        return cls(
            data=beside(data.get("source")),
            data_table=data.get("table"),
            count_column=data.get("count_column"),
            missing=data.get("missing"),
            outside=data.get("outside"),
            encoding=data.get("encoding"),
            decimal=data.get("decimal"),
            dates=data.get("dates"),
            blanks=tuple(data.get("blanks", ())),
            domain=_domain(stated.get("domain", {}), folder),
            policy=_policy(stated.get("policy", {}), folder),
            workload=_workload(stated.get("workload", {}), folder),
            mechanism=choice.get("name"),
            records=choice.get("records"),
            epsilon=_number(budget.get("epsilon")),
            alpha=_number(budget.get("alpha")),
            beta=_number(budget.get("beta")),
            ledger=beside(budget.get("ledger")),
            total=_number(budget.get("total")),
            request=budget.get("request"),
            release=beside(output.get("release")),
            table=beside(output.get("table")),
            picture=beside(output.get("picture")),
            confidence=output.get("confidence"),
        )

    def overridden(self, flags: Mapping[str, Any]) -> Self:
        """Return the job with what flags say instead; None leaves it as it is."""
        given = {
            name: value for name, value in flags.items() if value not in (None, (), [])
        }
        changed: dict[str, Any] = {}
        # Epsilon and accuracy are two ways to say one thing: the flag's way holds.
        if "epsilon" in given:
            changed.update(alpha=None, beta=None)
        if "alpha" in given or "beta" in given:
            changed.update(epsilon=None)
        if "data" in given:
            changed.update(data_table=None)
        changed.update(given)
        for several in ("domain", "blanks"):
            if several in changed:
                changed[several] = tuple(changed[several])
        return replace(self, **changed)

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
        return {name: one for name, one in found.items() if one not in (None, ())}


def _check_names(stated: Mapping[str, Any]) -> None:
    for table, content in stated.items():
        if table not in KNOWN:
            raise InputError(
                f"a job file has no table [{table}]{nearest(table, KNOWN)}; its tables "
                f"are {_listed(KNOWN)}"
            )
        if not isinstance(content, Mapping):
            raise InputError(
                f"[{table}] of a job file is a table; received {content!r}"
            )
        for name, value in content.items():
            if table != "domain":
                _check_value(table, name, value)


def _check_value(table: str, name: str, value: Any) -> None:
    known = KNOWN[table]
    if name not in known:
        raise InputError(
            f"[{table}] has no {name!r}{nearest(name, known)}; it takes "
            f"{_listed(known)}"
        )
    number = isinstance(value, int | float) and not isinstance(value, bool)
    fits = {
        TEXT: isinstance(value, str),
        NUMBER: number,
        WHOLE: number and isinstance(value, int),
        TEXTS: _texts(value),
        RULES: isinstance(value, str)
        or (isinstance(value, Mapping) and _texts(list(value.values()))),
    }[known[name]]
    if not fits:
        raise InputError(f"{name!r} of [{table}] is {known[name]}; received {value!r}")


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def _number(value: Any) -> str | None:
    return None if value is None else str(value)


def _beside(folder: Path, name: str) -> str:
    """Return the path of a file that a job names; addresses stay as they are."""
    if "://" in name or name == "demo" or folder == Path():
        return name
    return str(folder / name)


def _domain(stated: Mapping[str, Any], folder: Path) -> tuple[str, ...]:
    plain = stated.get("cells")
    if len(stated) == 1 and isinstance(plain, int | str) and "=" not in str(plain):
        return (str(plain),)
    return tuple(_column(name, cells, folder) for name, cells in stated.items())


def _column(name: str, cells: Any, folder: Path) -> str:
    if isinstance(cells, list) and cells:
        if _texts(cells):
            if any("," in one for one in cells):
                raise InputError(
                    f"categories of {name!r} hold a comma; list them in a file, one "
                    f'per line: {name} = "categories:@FILE"'
                )
            return f"{name}=categories:{','.join(cells)}"
        if all(_is_cut(one) for one in cells):
            return f"{name}=edges:{','.join(str(one) for one in cells)}"
    if isinstance(cells, str) and cells:
        kind, at, file = cells.partition("@")
        return f"{name}={kind}{at}{_beside(folder, file)}" if at else f"{name}={cells}"
    if isinstance(cells, int) and not isinstance(cells, bool):
        return f"{name}={cells}"
    raise InputError(
        f'the cells of {name!r} in [domain] are "0:101:1", a list of categories, a '
        f"list of edges, or a number of cells; received {cells!r}"
    )


def _is_cut(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number or type(value) is datetime.date


def _policy(stated: Mapping[str, Any], folder: Path) -> str | None:
    if not stated:
        return None
    known = stated.get("known", ())
    words = _words(
        stated,
        "policy",
        folder,
        [str(stated[name]) for name in ("theta", "size") if name in stated]
        + [str(stated[name]) for name in ("unit", "metric") if name in stated]
        + ([",".join(stated["factors"])] if "factors" in stated else []),
    )
    return f"{words}{KNOWN_TOTALS}{','.join(known)}" if known else words


def _workload(stated: Mapping[str, Any], folder: Path) -> str | None:
    if not stated:
        return None
    return _words(
        stated,
        "workload",
        folder,
        ([str(stated["number"])] if "number" in stated else [])
        + ([",".join(stated["columns"])] if "columns" in stated else []),
    )


def _words(
    stated: Mapping[str, Any], table: str, folder: Path, settings: list[str]
) -> str:
    """Put a table into the words that a flag would take."""
    if "kind" not in stated:
        raise InputError(f"[{table}] needs a kind; received {', '.join(stated)}")
    kind, apart, rest = stated["kind"].partition(":")
    if apart and names_a_file(rest):
        rest = _beside(folder, rest)
    elif not apart and table == "workload" and names_a_file(kind):
        kind = _beside(folder, kind)
    if "file" in stated:
        settings = [_beside(folder, stated["file"]), *settings]
    return ":".join([kind, *([rest] if apart else []), *settings])
