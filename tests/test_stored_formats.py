"""Files as the first version writes them are read, and hold what they held.

    python -m tests.test_stored_formats      writes `tests/formats` again

A format is promised from the first version on. The files are written again only when a
format gets another number, and then the older files stay beside the new ones.
"""

from __future__ import annotations

import gzip
import io
import json
import tempfile
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.data.tables.answers import SurveyAnswers
from blowfish_fast.mechanisms.around_releases.first_look import FirstLook
from blowfish_fast.release.certificates import Certificate
from blowfish_fast.release.file import KINDS_OF_FILES
from blowfish_fast.release.wide.look_release import LookRelease

FOLDER = Path(__file__).with_name("formats")
LINE = bf.Domain(8, names="age")
PRESENT = bf.policies.AddRemove(LINE)
CELLS = bf.workloads.Identity(LINE)
COUNTS = np.arange(8) * 40
PEOPLE = bf.Domain.product(LINE, bf.Domain.from_levels(["F", "M"], name="sex"))
TIME = bf.WideDomain(2**40, names="time")
SEVERAL = bf.Histogram(PEOPLE, np.arange(16).reshape(8, 2) * 30)
ARRIVED = {"time": [5] * 90 + [2**39] * 60}


def questions(**budget):
    """Return what the stored ledgers were asked, each with its data."""
    ranges = bf.workloads.Ranges(LINE, [0, 2], [3, 8])
    noise = bf.Laplace if "epsilon" in budget else bf.Gaussian
    return [
        (noise(PRESENT, CELLS, **budget), COUNTS),
        (bf.Dawa(PRESENT, ranges, **budget), COUNTS),
        (bf.Hierarchy(PRESENT, ranges, **budget), COUNTS),
    ]


def make_certificate(kind):
    ledger = bf.Ledger(epsilon=2, policy=PRESENT)
    release = ledger.release(bf.Dawa(PRESENT, CELLS, epsilon=1), COUNTS, rng=1)
    return ledger.certify(release, COUNTS, CELLS, epsilon=1, rng=2)


def make_tables(kind):
    policy = bf.policies.AddRemove(PEOPLE)
    if kind is bf.TablesRelease:
        asked = bf.workloads.Tables(PEOPLE, ways=1)
        return bf.Contingency(policy, asked, epsilon=1).release(SEVERAL, rng=1)
    mechanism, data = bf.ChosenTables.example(PEOPLE, policy, 1)
    return mechanism.release(data, rng=1)


def make_wide(kind):
    policy = bf.policies.AddRemove(TIME)
    data = bf.SparseHistogram.from_records(TIME, ARRIVED)
    if kind is bf.SparseRelease:
        return bf.SparseLaplace(policy, epsilon=1).release(data, rng=1)
    asked = bf.workloads.Ranges(TIME, [0], [2**20])
    return bf.Dawa(policy, asked, epsilon=1).release(data, rng=1)


def make_histogram(kind):
    return bf.Dawa(PRESENT, CELLS, epsilon=1).release(COUNTS, rng=1)


def make_centres(kind):
    mechanism = bf.KMeans(PRESENT, clusters=2, epsilon=1)
    return mechanism.release(bf.Histogram(LINE, COUNTS), rng=1)


def make_look(kind):
    answers = {"sex": ["f", "m", "m", ""] * 100, "age": [20, 30, 30, 50] * 100}
    stated = {"sex": bf.Domain.from_levels(["f", "m"], name="sex")}
    columns = {**answers, "town": ["Bern", "Chur"] * 200}
    mechanism = FirstLook(list(columns), stated=stated, ordered=["sex"], epsilon=9)
    return mechanism.release(SurveyAnswers(columns), rng=1)


KINDS = {
    "histogram": (bf.HistogramRelease, make_histogram),
    "tables": (bf.TablesRelease, make_tables),
    "chosen_tables": (bf.ChosenTablesRelease, make_tables),
    "cells": (bf.SparseRelease, make_wide),
    "ranges": (bf.RangesRelease, make_wide),
    "centres": (bf.Centres, make_centres),
    "certificate": (Certificate, make_certificate),
    "look": (LookRelease, make_look),
}


def make_series(path):
    weeks = bf.Series(
        bf.Ledger(None, policy=PRESENT, rho=3),
        column="received",
        every="week",
        totals=True,
        frozen=True,
    )
    for number in (1, 2):
        arrived = [COUNTS] * number
        weeks.release(
            f"2026-W0{number}", bf.Gaussian(PRESENT, rho=1), arrived, rng=number
        )
    weeks.save(path)


def write_everything():
    FOLDER.mkdir(exist_ok=True)
    for name, (kind, make) in KINDS.items():
        pack(make(kind).to_bytes(), f"{name}.blowfish")
    with tempfile.TemporaryDirectory() as folder:
        make_series(Path(folder) / "series")
        pack((Path(folder) / "series").read_bytes(), "series.blowfish")
    for currency in ("epsilon", "rho"):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "made.ledger"
            with bf.Ledger(path, policy=PRESENT, **{currency: 1}) as ledger:
                for asked, data in questions(**{currency: "0.25"}):
                    ledger.release(asked, data, request=asked.name)
            pack(path.read_bytes(), f"{currency}.ledger")


def pack(data, name):
    """Keep a file, packed: some are text, and none is ours to tidy."""
    (FOLDER / f"{name}.gz").write_bytes(gzip.compress(data, mtime=0))


def stored(name):
    return gzip.decompress((FOLDER / f"{name}.gz").read_bytes())


def content(data):
    """Return what a file holds, whatever packed it."""
    if not data.startswith(b"PK"):
        return json.loads(data)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_every_kind_of_file_is_stored():
    readers = {name.decode() for name in KINDS_OF_FILES}
    names = [path.stem for path in FOLDER.glob("*.blowfish.gz")]
    heads = [next(iter(content(stored(name)))) for name in names]
    assert readers <= {*heads, "centres"}
    assert len(heads) == len(KINDS) + 1


@pytest.mark.parametrize("name", KINDS)
def test_a_stored_release_is_read_as_what_it_was(name):
    kind, _ = KINDS[name]
    data = stored(f"{name}.blowfish")
    release = bf.Release.from_bytes(data)
    assert type(release) is kind
    assert content(release.to_bytes()) == content(data)


def test_a_stored_series_is_read_as_what_it_was(tmp_path):
    data = stored("series.blowfish")
    path = tmp_path / "series.blowfish"
    path.write_bytes(data)
    series = bf.series.SavedSeries.load(path)
    assert content(series.to_bytes()) == content(data)


@pytest.mark.parametrize("currency", ["epsilon", "rho"])
def test_a_stored_ledger_finds_every_question_that_was_paid_for(currency, tmp_path):
    path = tmp_path / "stored.ledger"
    path.write_bytes(stored(f"{currency}.ledger"))
    with bf.Ledger(path) as ledger:
        ledger.verify()
        spent = ledger.spent
        assert spent == pytest.approx(0.75)
        for asked, data in questions(**{currency: "0.25"}):
            # Counts of zero: the answer that was stored is given, and nothing is drawn.
            again = ledger.release(asked, np.zeros_like(data), request=asked.name)
            assert again.estimate.sum() > 100
        assert ledger.spent == spent


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        write_everything()
