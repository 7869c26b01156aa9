"""All two-way tables of a survey by several packages, under one promise, in one run.

    python -m experiments rivals --data FOLDER --trials 3   # FOLDER/tables/NAME.csv.gz

Everybody promises (epsilon, delta) when a record is added or removed: ours and the
plain split by rho, OpenDP's contingency tables by the same rho, smartnoise-synth by
its own conversion, mbi as mirror descent over two-way tables measured with the same
rho. Every package takes every survey in a process of its own with a limit of CPU time,
with the same seeds, as often as fits into it. Those that are not installed, fail or
reach the limit are named; --limit states another one.
They pin each other's versions (OpenDP and smartnoise-synth need mbi below 2). AIM and
MST of private-pgm are files of its repository that no package installs: they are
imported where its folder of mechanisms is on the path, PYTHONPATH=.../mechanisms.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from importlib import import_module, metadata
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import blowfish_fast as bf
from blowfish_fast._support.typing import FloatArray

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


class RivalRow(NamedTuple):
    """Root mean squared error of a cell over all one- and two-way tables.

    `misplaced` is the share of records in a wrong cell, mean over the same tables;
    `error` is the mean over the trials and `standard_error` its own, or `error` says
    why there is none; `seconds` is the CPU time of a trial.
    """

    survey: str
    package: str
    error: float | str
    trials: int = 0
    standard_error: float = math.nan
    seconds: float = math.nan
    misplaced: float = math.nan


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
    folder: Path | None, trials: int, *, epsilon: float = 1.0, limit: int | None = None
) -> Iterator[RivalRow]:
    """Release every survey by every package, within a limit of CPU time of each.

    Without a limit everything happens in this process.
    """
    every = surveys(np.random.default_rng(1))
    every += table_files(folder) if folder is not None else []
    for survey in every:
        for package in PACKAGES:
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
                    yield RivalRow(survey.name, package, late)


def _limit(seconds: int) -> None:
    """End this process after so much CPU time."""
    resource = import_module("resource")
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))


def _compared(
    package: str, survey: Survey, epsilon: float, trials: int, limit: float
) -> RivalRow:
    coded = _coded(survey)
    names = _names(coded)
    truths = {one: _counted(coded, one) for one in names}
    errors, wrong = [], []
    count = len(coded.columns[coded.target])
    begun = time.process_time()
    try:
        for seed in range(1, trials + 1):
            tables = PACKAGES[package](coded, epsilon, seed)
            away = [tables(one) - truths[one] for one in names]
            squares = [(one**2).mean() for one in away]
            errors.append(math.sqrt(float(np.mean(squares))))
            wrong.append(float(np.mean([np.abs(one).sum() for one in away])))
            used = time.process_time() - begun
            if time.process_time() + 1.5 * used / seed > limit:
                break
    except ImportError as missing:
        return RivalRow(survey.name, package, f"not installed: {missing.name}")
    except Exception as failure:  # a rival's own failure is a result
        words = f"failed: {type(failure).__name__}: {str(failure)[:60]}"
        return RivalRow(survey.name, package, words)
    done = len(errors)
    spread = float(np.std(errors, ddof=1)) if done > 1 else math.nan
    mean, own = float(np.mean(errors)), spread / math.sqrt(done)
    share = float(np.mean(wrong)) / (2.0 * count)
    return RivalRow(survey.name, package, mean, done, own, used / done, share)


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


def _contingency(survey: Survey, epsilon: float, seed: int) -> Tables:
    out = _released(survey, epsilon, seed)
    return lambda names: np.asarray(out.table(*names).estimate)


def _non_negative(survey: Survey, epsilon: float, seed: int) -> Tables:
    out = _released(survey, epsilon, seed)
    return lambda names: np.asarray(out.fitted(*names).estimate)


def _chosen(survey: Survey, epsilon: float, seed: int) -> Tables:
    policy = bf.policies.AddRemove(survey.domain)
    asked = bf.workloads.Tables(survey.domain, ways=2)
    mechanism = bf.ChosenTables(
        policy, asked, choose="data", epsilon=epsilon, delta=DELTA
    )
    counted = bf.TableCounts.from_records(mechanism, survey.columns)
    out: Any = mechanism.release(counted, rng=seed)
    return lambda names: np.asarray(out.fitted(*names).estimate)


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


def _plain_split(survey: Survey, epsilon: float, seed: int) -> Tables:
    noisy, _ = _noisy_tables(survey, epsilon, seed, _names(survey))
    return noisy.__getitem__


def _mirror_descent(survey: Survey, epsilon: float, seed: int) -> Tables:
    mbi = import_module("mbi")
    sizes = {name: _size(survey, name) for name in survey.columns}
    if math.prod(sizes.values()) > MOST_CELLS:
        raise MemoryError("all pairs make one clique of all attributes")
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
    return lambda names: np.asarray(model.project(names).datavector(flatten=False))


def _private_pgm(survey: Survey) -> Any:
    """Return the records as private-pgm's own mechanisms take them."""
    mbi, frames = import_module("mbi"), import_module("pandas")
    sizes = {name: _size(survey, name) for name in survey.columns}
    domain = mbi.Domain(tuple(sizes), tuple(sizes.values()))
    return mbi.Dataset(frames.DataFrame(survey.columns), domain)


def _authors_aim(survey: Survey, epsilon: float, seed: int) -> Tables:
    """Return the tables of AIM's model, by the file aim.py of private-pgm."""
    maker = import_module("aim").AIM
    data = _private_pgm(survey)
    drawn = np.random.RandomState(seed)
    aim = maker(
        epsilon,
        float(DELTA),
        prng=drawn,
        max_model_size=MODEL_MEGABYTES,
        max_iters=AIM_STEPS,
    )
    pairs = [names for names in _names(survey) if len(names) == 2]
    asked = [
        (names, 1.0) for names in pairs if data.domain.size(names) <= LARGEST_TABLE
    ]
    result = aim.run(data, asked)
    model = result[0] if isinstance(result, tuple) else result

    def table(names: tuple[str, ...]) -> FloatArray:
        sizes = [_size(survey, name) for name in names]
        return np.asarray(model.project(names).datavector()).reshape(sizes)

    return table


def _authors_mst(survey: Survey, epsilon: float, seed: int) -> Tables:
    """Return tables of the records of MST, by the file mst.py of private-pgm."""
    maker = import_module("mst").MST
    np.random.seed(seed)  # noqa: NPY002 - it draws from the global generator
    drawn = maker(_private_pgm(survey), epsilon, float(DELTA)).df
    columns = {name: drawn[name].to_numpy().astype(int) for name in survey.columns}
    records = survey._replace(columns=columns)
    return lambda names: _counted(records, names)


def _opendp(survey: Survey, epsilon: float, seed: int) -> Tables:
    dp, polars = import_module("opendp.prelude"), import_module("polars")
    mst = import_module("opendp.extras.mbi").MST
    dp.enable_features("contrib")
    context = dp.Context.compositor(
        data=polars.LazyFrame(survey.columns),
        privacy_unit=dp.unit_of(contributions=1),
        # Few binary digits, or its own halves and thirds overdraw it by rounding.
        privacy_loss=dp.loss_of(rho=math.floor(_rho(epsilon) * 2**20) / 2**20),
        split_evenly_over=1,
    )
    keys = {name: list(range(_size(survey, name))) for name in survey.columns}
    table = context.query().contingency_table(keys=keys, algorithm=mst()).release()

    def project(names: tuple[str, ...]) -> FloatArray:
        # The last code of each attribute stands for values that are no key.
        known = tuple(slice(_size(survey, one)) for one in names)
        return np.asarray(table.project(names))[known]

    return project


def _smartnoise(survey: Survey, epsilon: float, seed: int) -> Tables:
    return _synthesised(survey, "mst", epsilon)


def _smartnoise_aim(survey: Survey, epsilon: float, seed: int) -> Tables:
    return _synthesised(survey, "aim", epsilon)


def _synthesised(survey: Survey, maker_name: str, epsilon: float) -> Tables:
    """Return tables of records that smartnoise-synth draws, as many as there are."""
    create = import_module("snsynth").Synthesizer.create
    frame = import_module("pandas").DataFrame(survey.columns)
    maker = create(maker_name, epsilon=epsilon, delta=float(DELTA))
    drawn = maker.fit_sample(
        frame, preprocessor_eps=0.0, categorical_columns=list(survey.columns)
    )
    made = survey._replace(
        columns={name: drawn[name].to_numpy().astype(int) for name in survey.columns}
    )
    return lambda names: _counted(made, names)


PACKAGES: dict[str, Callable[[Survey, float, int], Tables]] = {
    "Contingency": _contingency,
    "Contingency, non-negative": _non_negative,
    "ChosenTables": _chosen,
    "plain split": _plain_split,
    "mbi, mirror descent": _mirror_descent,
    "private-pgm, AIM": _authors_aim,
    "private-pgm, MST": _authors_mst,
    "OpenDP, MST": _opendp,
    "smartnoise-synth, MST": _smartnoise,
    "smartnoise-synth, AIM": _smartnoise_aim,
}


def rival_report(
    folder: Path | None, trials: int, limit: int | None = MOST_SECONDS
) -> Iterator[str]:
    """Yield the versions and the rows as lines of a table, each as it is known."""
    for name in ("blowfish_fast", "mbi", "opendp", "smartnoise-synth"):
        try:
            yield f"{name} {metadata.version(name)}"
        except metadata.PackageNotFoundError:
            yield f"{name} is not installed"
    yield (
        f"rms of a cell, all tables up to two-way, (1, {DELTA}): mean +- its standard "
        "error; trials; CPU s of each; share of records in a wrong cell"
    )
    for row in rival_rows(folder, trials, limit=limit):
        shown = row.error
        if not isinstance(shown, str):
            shown = f"{shown:.4g} +- {row.standard_error:.2g}"
        yield (
            f"{row.survey:14}  {row.package:26}  {shown:>16}  {row.trials}  "
            f"{row.seconds:8.1f}  {row.misplaced:.4f}"
        )
