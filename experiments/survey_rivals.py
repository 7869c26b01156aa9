"""All two-way tables of a survey by several packages, under one promise, in one run.

    python -m experiments rivals --data FOLDER --trials 3   # FOLDER/tables/NAME.csv.gz
    python -m experiments rivals --data FOLDER --only adult --only "OpenDP, MST"

Everybody promises (epsilon, delta) when a record is added or removed: ours and the
plain split by rho, OpenDP's contingency tables by the same rho, smartnoise-synth by
its own conversion, mbi as mirror descent over two-way tables measured with the same
rho. Every package takes every survey in a process of its own with a limit of CPU time,
with the same seeds, as often as fits into it. Those that are not installed, fail or
reach the limit are named; --limit states another one, and --only measures some surveys
and packages again. Rows are written to docs/data/tables/rivals.csv, one by one.

    pip install "opendp[mbi]==0.16.0" "pandas<3" "sqlalchemy<3" pyyaml graphviz Faker
    pip install antlr4-python3-runtime==4.9.3 "disjoint-set<0.10" pac-synth==0.0.8
    pip install --no-deps smartnoise-synth==1.0.8 smartnoise-sql==1.0.10

installs OpenDP, mbi and smartnoise-synth beside each other. Without ``--no-deps`` the
last ones ask for an older OpenDP, and for a PyTorch that neither MST nor AIM needs. AIM
and MST of private-pgm are files of its repository that no package installs: they are
imported where its folder of mechanisms is on the path, PYTHONPATH=.../mechanisms.
"""

from __future__ import annotations

import csv
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from importlib import import_module, metadata
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import blowfish_fast as bf
from blowfish_fast._support.typing import AnyArray, FloatArray

from .chosen_records import DATA, write_rows
from .survey_tables import EDGES, Survey, surveys

DELTA = "1e-9"
MOST_SECONDS = 180
"""CPU seconds of a package for one survey."""
MODEL_MEGABYTES = 1.0
"""Size of AIM's model, as the comparison of this project with it took it."""
AIM_STEPS = 100
"""Steps of its fit in each round, likewise."""
LARGEST_TABLE = 10_000
"""Cells of a table that AIM is asked for: it fits larger ones in hours."""
MOST_CELLS = 2**21
"""Cells of a whole domain, beyond which mirror descent over all pairs is not tried."""

Tables = Callable[[tuple[str, ...]], FloatArray]


class NotTriedError(Exception):
    """A package that could not hold a survey is not asked for it."""


class RivalRelease(NamedTuple):
    """What a package releases of a survey: tables, records, or both.

    Attributes
    ----------
    table : callable or None
        Returns the table of some attributes; None where there are only records.
    records : Survey or None
        As many synthetic records as there are true ones.
    """

    table: Tables | None
    records: Survey | None = None


class RivalRow(NamedTuple):
    """Root mean squared error of a cell over all one- and two-way tables.

    `misplaced` is the share of records in a wrong cell, mean over the same tables once
    they are scaled to the true number of records, and `drawn` that of the tables of
    synthetic records. `error` is the mean over the trials and `standard_error` its own,
    of tables where there are some and of records otherwise; or `error` says why there
    is none. `seconds` is the CPU time of a trial, and `version` that of the package.
    """

    survey: str
    package: str
    version: str
    error: float | str
    trials: int = 0
    standard_error: float = math.nan
    seconds: float = math.nan
    misplaced: float = math.nan
    drawn: float = math.nan


def table_files(folder: Path) -> list[Survey]:
    """Read surveys: codes in NAME.csv.gz, numbers of codes in NAME-domain.json."""
    found = []
    for file in sorted((folder / "tables").glob("*.csv.gz")):
        name = file.name.removesuffix(".csv.gz")
        sizes = json.loads((file.parent / f"{name}-domain.json").read_text())
        codes = np.loadtxt(file, delimiter=",", skiprows=1, dtype=np.int64)
        sides = [bf.Domain(size, names=[one]) for one, size in sizes.items()]
        columns = dict(zip(sizes, codes.T, strict=True))
        domain = bf.WideDomain.product(*sides)
        found.append(Survey(name, domain, columns, next(reversed(sizes))))
    return found


def rival_rows(
    folder: Path | None,
    trials: int,
    *,
    epsilon: float = 1.0,
    limit: int | None = None,
    only: Sequence[str] = (),
) -> Iterator[RivalRow]:
    """Release every survey by every package, within a limit of CPU time of each.

    Without a limit everything happens in this process.

    Parameters
    ----------
    folder : Path or None
        Holds tables/NAME.csv.gz; without it only bundled surveys are released.
    trials : int
        Releases of each package, at most.
    epsilon : float
        Of the promise (epsilon, delta).
    limit : int or None
        CPU seconds of a package for one survey.
    only : sequence of str
        Names of surveys, of packages, or of both; all without.

    Yields
    ------
    RivalRow
        As soon as it is known.
    """
    every = surveys(np.random.default_rng(1))
    every += table_files(folder) if folder is not None else []
    named = {survey.name for survey in every} & {*only}
    packages = {*PACKAGES} & {*only} or {*PACKAGES}
    for survey in every:
        if named and survey.name not in named:
            continue
        for package in PACKAGES:
            if package not in packages:
                continue
            asked = (package, survey, epsilon, trials, limit or math.inf)
            if limit is None:
                yield _compared(*asked)
                continue
            with ProcessPoolExecutor(
                1, get_context("spawn"), initializer=_limit, initargs=(limit,)
            ) as process:
                try:
                    yield process.submit(_compared, *asked).result()
                except BrokenProcessPool:
                    late = f"no result within {limit} CPU s"
                    yield RivalRow(survey.name, package, _version(package), late)


def _version(package: str) -> str:
    """Return the packages that do the work of a rival, with their versions."""
    if package not in DISTRIBUTIONS:
        return f"blowfish_fast {bf.__version__}"
    versions = []
    for name in DISTRIBUTIONS[package]:
        try:
            versions.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            versions.append(f"{name} is not installed")
    return ", ".join(versions)


def _limit(seconds: int) -> None:
    """End this process after so much CPU time."""
    resource = import_module("resource")
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))


def _compared(
    package: str, survey: Survey, epsilon: float, trials: int, limit: float
) -> RivalRow:
    coded = _coded(survey)
    truths = {names: _counted(coded, names) for names in _names(coded)}
    errors: list[float] = []
    misplaced: dict[str, list[float]] = {"tables": [], "records": []}
    spent = 0.0
    try:
        for seed in range(1, trials + 1):
            begun = time.process_time()
            release = PACKAGES[package](coded, epsilon, seed)
            by_kind = _tables_of(release)
            for kind, table in by_kind.items():
                tables = {names: table(names) for names in truths}
                misplaced[kind].append(_misplaced(tables, truths))
                if kind == next(iter(by_kind)):
                    spent += time.process_time() - begun
                    squares = [
                        float(((tables[names] - true) ** 2).mean())
                        for names, true in truths.items()
                    ]
                    errors.append(math.sqrt(float(np.mean(squares))))
            if time.process_time() + 1.5 * spent / seed > limit:
                break
    except ImportError as missing:
        words = f"not installed: {missing.name}"
        return RivalRow(survey.name, package, _version(package), words)
    except NotTriedError as reason:
        words = f"not tried: {reason}"
        return RivalRow(survey.name, package, _version(package), words)
    except Exception as failure:  # a rival's own failure is a result
        words = f"failed: {type(failure).__name__}: {str(failure)[:60]}"
        return RivalRow(survey.name, package, _version(package), words)
    done = len(errors)
    spread = float(np.std(errors, ddof=1)) if done > 1 else math.nan
    shares = {
        kind: float(np.mean(found)) if found else math.nan
        for kind, found in misplaced.items()
    }
    return RivalRow(
        survey.name,
        package,
        _version(package),
        float(np.mean(errors)),
        done,
        spread / math.sqrt(done),
        spent / done,
        shares["tables"],
        shares["records"],
    )


def _tables_of(release: RivalRelease) -> dict[str, Tables]:
    """Return what a release says of every table: by its tables, and by its records."""
    found: dict[str, Tables] = {}
    if release.table is not None:
        found["tables"] = release.table
    records = release.records
    if records is not None:
        found["records"] = lambda names: _counted(records, names)
    return found


def _misplaced(
    tables: Mapping[tuple[str, ...], FloatArray],
    truths: Mapping[tuple[str, ...], FloatArray],
) -> float:
    """Return the share of records in a wrong cell, mean over tables once scaled."""
    shares = []
    for names, true in truths.items():
        table, count = tables[names], float(true.sum())
        scale = count / max(float(table.sum()), 1e-300)
        shares.append(float(np.abs(table * scale - true).sum()) / (2.0 * count))
    return float(np.mean(shares))


def _coded(survey: Survey) -> Survey:
    """Return the survey with cells in place of values, for packages without edges."""
    columns = {
        name: np.digitize(one, EDGES[name]) - 1 if name in EDGES else one
        for name, one in survey.columns.items()
    }
    sides = [bf.Domain(_size(survey, name), names=[name]) for name in columns]
    return survey._replace(domain=bf.WideDomain.product(*sides), columns=columns)


def _size(survey: Survey, name: str) -> int:
    return int(survey.domain.shape[survey.domain.axis(name)])


def _names(survey: Survey) -> list[tuple[str, ...]]:
    asked = bf.workloads.Tables(survey.domain, ways=2)
    return [tuple(map(str, asked.names(at))) for at in range(len(asked.tables))]


def _rho(epsilon: float) -> float:
    return float(bf.budgets.rho_of(epsilon=epsilon, delta=DELTA))


def _counted(survey: Survey, names: tuple[str, ...]) -> FloatArray:
    sizes = [_size(survey, one) for one in names]
    at = np.ravel_multi_index([survey.columns[one] for one in names], sizes)
    counts = np.bincount(at, minlength=math.prod(sizes)).reshape(sizes)
    return counts.astype(np.float64)


def _released(survey: Survey, epsilon: float, seed: int) -> Any:
    policy = bf.policies.AddRemove(survey.domain)
    asked = bf.workloads.Tables(survey.domain, ways=2)
    mechanism = bf.Contingency(policy, asked, epsilon=epsilon, delta=DELTA)
    counted = bf.TableCounts.from_records(mechanism, survey.columns)
    return mechanism.release(counted, rng=seed)


def _contingency(survey: Survey, epsilon: float, seed: int) -> RivalRelease:
    out = _released(survey, epsilon, seed)
    return RivalRelease(lambda names: np.asarray(out.table(*names).estimate))


def _non_negative(survey: Survey, epsilon: float, seed: int) -> RivalRelease:
    out = _released(survey, epsilon, seed)
    return _with_sample(survey, out, seed)


def _chosen(survey: Survey, epsilon: float, seed: int) -> RivalRelease:
    policy = bf.policies.AddRemove(survey.domain)
    asked = bf.workloads.Tables(survey.domain, ways=2)
    mechanism = bf.ChosenTables(
        policy, asked, choose="data", epsilon=epsilon, delta=DELTA
    )
    counted = bf.TableCounts.from_records(mechanism, survey.columns)
    out: Any = mechanism.release(counted, rng=seed)
    return _with_sample(survey, out, seed)


def _with_sample(survey: Survey, out: Any, seed: int) -> RivalRelease:
    """Return the fitted tables of a release of ours, and its synthetic records."""
    drawn = out.sample(len(survey.columns[survey.target]), rng=seed)
    columns = {name: np.asarray(drawn[name]).astype(int) for name in survey.columns}
    return RivalRelease(
        lambda names: np.asarray(out.fitted(*names).estimate),
        survey._replace(columns=columns),
    )


def _noisy_tables(
    survey: Survey, epsilon: float, seed: int, asked: Sequence[tuple[str, ...]]
) -> tuple[dict[tuple[str, ...], FloatArray], float]:
    """Return tables with an equal part of rho each, and the sigma of their noise."""
    rng, sigma = (
        np.random.default_rng(seed),
        math.sqrt(0.5 * len(asked) / _rho(epsilon)),
    )
    exact = {one: _counted(survey, one) for one in asked}
    return {
        one: table + rng.normal(0.0, sigma, table.shape) for one, table in exact.items()
    }, sigma


def _plain_split(survey: Survey, epsilon: float, seed: int) -> RivalRelease:
    noisy, _ = _noisy_tables(survey, epsilon, seed, _names(survey))
    return RivalRelease(noisy.__getitem__)


def _sizes(survey: Survey) -> dict[str, int]:
    return {name: _size(survey, name) for name in survey.columns}


def _of_model(survey: Survey, model: Any) -> Tables:
    """Return tables of a model of mbi."""

    def table(names: tuple[str, ...]) -> FloatArray:
        sizes = [_size(survey, name) for name in names]
        return np.asarray(model.project(names).datavector()).reshape(sizes)

    return table


def _of_frame(survey: Survey, frame: Any) -> Survey:
    """Return synthetic records of a data frame, or of columns by name."""
    columns: dict[str, AnyArray] = {
        name: np.asarray(frame[name]).astype(int) for name in survey.columns
    }
    return survey._replace(columns=columns)


def _mirror_descent(survey: Survey, epsilon: float, seed: int) -> RivalRelease:
    mbi, sizes = import_module("mbi"), _sizes(survey)
    if math.prod(sizes.values()) > MOST_CELLS:
        raise NotTriedError("all pairs make one clique of all attributes")
    pairs = [one for one in _names(survey) if len(one) == 2]
    noisy, sigma = _noisy_tables(survey, epsilon, seed, pairs)
    measured = [
        mbi.LinearMeasurement(one.reshape(-1), names, sigma)
        for names, one in noisy.items()
    ]
    domain = mbi.Domain(tuple(sizes), tuple(sizes.values()))
    estimation = import_module("mbi.estimation")
    if hasattr(estimation, "mirror_descent"):
        model = estimation.mirror_descent(domain, measured)
    else:
        model = estimation.MirrorDescent().estimate(domain, measured)
    return RivalRelease(_of_model(survey, model))


def _private_pgm(survey: Survey) -> Any:
    """Return the records as private-pgm's own mechanisms take them."""
    mbi, sizes = import_module("mbi"), _sizes(survey)
    domain = mbi.Domain(tuple(sizes), tuple(sizes.values()))
    return mbi.Dataset(dict(survey.columns), domain)


def _authors_aim(survey: Survey, epsilon: float, seed: int) -> RivalRelease:
    """Return the model and the records of AIM, by the file aim.py of private-pgm."""
    maker = import_module("aim").AIM
    data = _private_pgm(survey)
    # Some versions of the file hand the generator on as another argument, and draw
    # from the global one.
    np.random.seed(seed)  # noqa: NPY002
    aim = maker(
        epsilon,
        float(DELTA),
        prng=np.random.RandomState(seed),
        max_model_size=MODEL_MEGABYTES,
        max_iters=AIM_STEPS,
    )
    pairs = [names for names in _names(survey) if len(names) == 2]
    asked = [
        (names, 1.0) for names in pairs if data.domain.size(names) <= LARGEST_TABLE
    ]
    count = len(survey.columns[survey.target])
    model, drawn = aim.run(data, asked, num_synth_rows=count)
    return RivalRelease(_of_model(survey, model), _of_frame(survey, drawn.to_dict()))


def _authors_mst(survey: Survey, epsilon: float, seed: int) -> RivalRelease:
    """Return the records of MST, by the file mst.py of private-pgm."""
    maker = import_module("mst").MST
    np.random.seed(seed)  # noqa: NPY002 - it draws from the global generator
    drawn = maker(_private_pgm(survey), epsilon, float(DELTA))
    return RivalRelease(None, _of_frame(survey, drawn.to_dict()))


def _opendp_mst(survey: Survey, epsilon: float, seed: int) -> RivalRelease:
    return _opendp(survey, epsilon, "MST", {})


def _opendp_aim(survey: Survey, epsilon: float, seed: int) -> RivalRelease:
    stated = {"queries": 2, "max_size": MODEL_MEGABYTES}
    return _opendp(survey, epsilon, "AIM", stated)


def _opendp(
    survey: Survey, epsilon: float, algorithm: str, stated: dict[str, Any]
) -> RivalRelease:
    """Return the table of OpenDP by one of its algorithms, and records of it."""
    dp, polars = import_module("opendp.prelude"), import_module("polars")
    maker = getattr(import_module("opendp.extras.mbi"), algorithm)
    dp.enable_features("contrib")
    context = dp.Context.compositor(
        data=polars.LazyFrame(survey.columns),
        privacy_unit=dp.unit_of(contributions=1),
        # Few binary digits, or its own halves and thirds overdraw it by rounding.
        privacy_loss=dp.loss_of(rho=math.floor(_rho(epsilon) * 2**20) / 2**20),
        split_evenly_over=1,
    )
    keys = {name: list(range(size)) for name, size in _sizes(survey).items()}
    asked = context.query().contingency_table(keys=keys, algorithm=maker(**stated))
    table = asked.release()

    def project(names: tuple[str, ...]) -> FloatArray:
        # The last code of each attribute stands for values that are no key.
        known = tuple(slice(_size(survey, one)) for one in names)
        return np.asarray(table.project(names))[known]

    return RivalRelease(project)


def _smartnoise_mst(survey: Survey, epsilon: float, seed: int) -> RivalRelease:
    return _synthesised(survey, "mst", epsilon, {})


def _smartnoise_aim(survey: Survey, epsilon: float, seed: int) -> RivalRelease:
    stated = {"max_model_size": MODEL_MEGABYTES, "max_cells": LARGEST_TABLE}
    return _synthesised(survey, "aim", epsilon, stated)


def _synthesised(
    survey: Survey, maker_name: str, epsilon: float, stated: dict[str, Any]
) -> RivalRelease:
    """Return records that smartnoise-synth draws, as many as there are."""
    create = import_module("snsynth").Synthesizer.create
    frame = import_module("pandas").DataFrame(survey.columns)
    maker = create(maker_name, epsilon=epsilon, delta=float(DELTA), **stated)
    drawn = maker.fit_sample(
        frame, preprocessor_eps=0.0, categorical_columns=list(survey.columns)
    )
    return RivalRelease(None, _of_frame(survey, drawn))


PACKAGES: dict[str, Callable[[Survey, float, int], RivalRelease]] = {
    "Contingency": _contingency,
    "Contingency, non-negative": _non_negative,
    "ChosenTables": _chosen,
    "plain split": _plain_split,
    "mbi, mirror descent": _mirror_descent,
    "private-pgm, AIM": _authors_aim,
    "private-pgm, MST": _authors_mst,
    "OpenDP, MST": _opendp_mst,
    "OpenDP, AIM": _opendp_aim,
    "smartnoise-synth, MST": _smartnoise_mst,
    "smartnoise-synth, AIM": _smartnoise_aim,
}

DISTRIBUTIONS: dict[str, tuple[str, ...]] = {
    "plain split": (),
    "mbi, mirror descent": ("mbi",),
    "private-pgm, AIM": ("mbi",),
    "private-pgm, MST": ("mbi",),
    "OpenDP, MST": ("opendp", "mbi"),
    "OpenDP, AIM": ("opendp", "mbi"),
    "smartnoise-synth, MST": ("smartnoise-synth", "mbi"),
    "smartnoise-synth, AIM": ("smartnoise-synth", "mbi"),
}
"""What is installed for each rival; ours are of this package."""


def _recorded(path: Path) -> dict[tuple[str, str], RivalRow]:
    """Return the rows of earlier runs."""
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        rows = [
            RivalRow(
                row["survey"],
                row["package"],
                row["version"],
                _number_or_words(row["error"]),
                int(row["trials"]),
                *(float(row[name]) for name in RivalRow._fields[5:]),
            )
            for row in csv.DictReader(file)
        ]
    return {(row.survey, row.package): row for row in rows}


def _number_or_words(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _place(row: RivalRow) -> tuple[str, int]:
    """Return where a row stands: surveys by name, packages as they are listed here."""
    listed = list(PACKAGES)
    at = listed.index(row.package) if row.package in listed else len(listed)
    return row.survey, at


def rival_report(
    folder: Path | None,
    trials: int,
    limit: int | None = MOST_SECONDS,
    only: Sequence[str] = (),
    path: Path = DATA / "rivals.csv",
) -> Iterator[str]:
    """Yield the rows as lines of a table, each as it is known, and record them.

    A row takes the place of an earlier one of the same survey and package.

    Parameters
    ----------
    folder, trials, limit, only
        As `rival_rows` takes them.
    path : Path
        The file of all rows.

    Yields
    ------
    str
        A line.
    """
    yield (
        f"rms of a cell, all tables up to two-way, (1, {DELTA}): mean +- its standard "
        "error; trials; CPU s of each; share of records in a wrong cell by tables, and "
        "by synthetic records; versions"
    )
    recorded = _recorded(path)
    for row in rival_rows(folder, trials, limit=limit, only=only):
        recorded[row.survey, row.package] = row
        write_rows(path, sorted(recorded.values(), key=_place))
        shown = row.error
        if not isinstance(shown, str):
            shown = f"{shown:.4g} +- {row.standard_error:.2g}"
        yield (
            f"{row.survey:14}  {row.package:26}  {shown:>16}  {row.trials}  "
            f"{row.seconds:8.1f}  {row.misplaced:.4f}  {row.drawn:.4f}  {row.version}"
        )
