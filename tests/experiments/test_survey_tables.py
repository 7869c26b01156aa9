"""All tables of surveys beside the plain split, and synthetic records that train."""

from __future__ import annotations

import gzip
import math

import numpy as np
import pytest

import blowfish_fast as bf

pytest.importorskip("sklearn")

from experiments import survey_rivals
from experiments.survey_tables import breast_cancer, compare_tables, generated


def test_tables_of_a_bundled_survey_err_as_predicted_and_less_than_split():
    row = compare_tables(breast_cancer(), 10.0, seed=3)
    assert row.contingency == pytest.approx(row.predicted, rel=0.25)
    assert row.contingency < row.plain_split
    assert row.non_negative < row.contingency
    assert row.trained_on_synthetic > row.trained_on_truth - 0.1


def test_records_of_a_generated_survey_lie_in_its_cells():
    survey = generated(np.random.default_rng(1))
    for name, column in survey.columns.items():
        assert column.min() >= 0
        assert column.max() < survey.domain.shape[survey.domain.axis(name)]


def test_packages_are_compared_under_one_promise_and_missing_ones_are_named(
    monkeypatch,
):
    def drawn(survey, epsilon, seed):
        return survey_rivals.RivalRelease(None, survey)

    def missing(survey, epsilon, seed):
        raise ModuleNotFoundError("none", name="nowhere")

    def failing(survey, epsilon, seed):
        raise MemoryError("too large")

    own = {
        name: survey_rivals.PACKAGES[name]
        for name in ("Contingency", "ChosenTables", "plain split")
    }
    monkeypatch.setattr(
        survey_rivals,
        "PACKAGES",
        {**own, "drawn": drawn, "missing": missing, "failing": failing},
    )
    rows = {one.package: one for one in survey_rivals.rival_rows(None, 2)}
    assert rows["missing"].error == "not installed: nowhere"
    assert rows["failing"].error == "failed: MemoryError: too large"
    # Records alone, here the true ones, are compared as they are.
    assert (rows["drawn"].error, rows["drawn"].drawn) == (0.0, 0.0)
    assert math.isnan(rows["drawn"].misplaced)
    assert rows["ChosenTables"].version == f"blowfish_fast {bf.__version__}"
    assert 0 < rows["ChosenTables"].drawn < 0.25
    assert math.isnan(rows["Contingency"].drawn)
    assert rows["Contingency"].error < rows["plain split"].error
    assert rows["Contingency"].misplaced < rows["plain split"].misplaced
    assert 0 < rows["ChosenTables"].misplaced < 0.2
    assert 0 < rows["plain split"].standard_error < rows["plain split"].error / 5


class StandIn:
    """What the files of private-pgm are asked for, without any of their work."""

    def __init__(self, *terms, **more):
        self.terms, self.size = (terms, more), None

    def datavector(self):
        return np.ones(self.size)


def test_mechanisms_of_private_pgm_are_asked_as_their_files_want_it(monkeypatch):
    survey = survey_rivals._coded(breast_cancer())
    counted = {
        names: survey_rivals._counted(survey, names).size
        for names in survey_rivals._names(survey)
    }
    seen = []

    class Records(StandIn):
        @property
        def domain(self):
            sizes = StandIn()
            sizes.size = lambda names: counted[names]
            return sizes

    class Drawn(StandIn):
        def to_dict(self):
            return survey.columns

    class Aim(StandIn):
        def run(self, data, asked, num_synth_rows):
            seen.append((self.terms, asked))
            assert num_synth_rows == 569
            model = StandIn()

            def project(names):
                model.size = counted[names]
                return model

            model.project = project
            return model, Drawn()

    class Modules:
        Domain, Dataset, AIM = StandIn, Records, Aim

        @staticmethod
        def MST(data, epsilon, delta):
            seen.append((epsilon, delta))
            return Drawn()

    monkeypatch.setattr(survey_rivals, "import_module", lambda name: Modules)
    pair = next(names for names in counted if len(names) == 2)
    truth = survey_rivals._counted(survey, pair)
    aim = survey_rivals._authors_aim(survey, 1.0, 3)
    assert aim.table(pair).shape == truth.shape
    assert (survey_rivals._counted(aim.records, pair) == truth).all()
    (terms, more), asked = seen[0]
    assert terms == (1.0, 1e-9)
    assert more["max_model_size"] == 1.0
    assert all(len(names) == 2 for names, _ in asked)
    mst = survey_rivals._authors_mst(survey, 1.0, 3)
    assert mst.table is None
    assert (survey_rivals._counted(mst.records, pair) == truth).all()
    assert seen[1] == (1.0, 1e-9)


def test_rows_are_recorded_one_by_one_and_measured_again_by_name(tmp_path, monkeypatch):
    exact = survey_rivals.RivalRelease
    packages = {
        "true records": lambda survey, *_: exact(None, survey),
        "true tables": lambda survey, *_: exact(
            lambda names: survey_rivals._counted(survey, names)
        ),
    }
    monkeypatch.setattr(survey_rivals, "PACKAGES", packages)
    monkeypatch.setattr(survey_rivals, "surveys", lambda rng: [breast_cancer()])
    path = tmp_path / "rivals.csv"
    head, *lines = survey_rivals.rival_report(None, 2, None, path=path)
    assert head.startswith("rms of a cell")
    assert [line.split("  ")[0] for line in lines] == ["breast cancer"] * 2
    before = survey_rivals._recorded(path)
    again = survey_rivals.rival_report(None, 1, None, ["true tables"], path)
    assert len(list(again)) == 2
    after = survey_rivals._recorded(path)
    assert list(after) == [("breast cancer", name) for name in packages]
    trials = [(before[place].trials, after[place].trials) for place in after]
    assert trials == [(2, 2), (2, 1)]


def test_a_package_that_takes_too_long_is_named(monkeypatch):
    monkeypatch.setattr(survey_rivals, "surveys", lambda rng: [breast_cancer()])
    monkeypatch.setattr(survey_rivals, "PACKAGES", {"Contingency": None})
    (row,) = survey_rivals.rival_rows(None, 10**6, limit=1)
    assert row.error == "no result within 1 CPU s"


def test_surveys_are_read_from_files_of_codes(tmp_path):
    folder = tmp_path / "tables"
    folder.mkdir()
    (folder / "tiny-domain.json").write_text('{"a": 2, "b": 3}')
    with gzip.open(folder / "tiny.csv.gz", "wt") as file:
        file.write("a,b\n0,2\n1,1\n1,1\n")
    (survey,) = survey_rivals.table_files(tmp_path)
    assert survey.domain.shape == (2, 3)
    assert survey.columns["b"].tolist() == [2, 1, 1]
    counted = survey_rivals._counted(survey, ("a", "b"))
    assert counted.tolist() == [[0, 0, 1], [0, 2, 0]]
