"""Names and answers of a file of which nothing is stated: `survey_file.py`."""

from __future__ import annotations

import pytest

from blowfish_fast.apps.cli.files import survey_file
from blowfish_fast.data.csv_files import TextForm
from blowfish_fast.errors import InputError

FORM = TextForm(None, ",")


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "survey.csv"
    path.write_text("sex;age;\nf;20;1,5\nm;41;\n")
    return path


def test_names_come_from_the_head_alone_in_the_order_of_the_file(path, monkeypatch):
    def never(*_):
        raise AssertionError("a record was read")

    monkeypatch.setattr(survey_file, "records_of", never)
    assert survey_file.columns_of(path, FORM, []) == ["sex", "age", "column 3"]
    assert survey_file.columns_of(path, FORM, ["age", "sex"]) == ["sex", "age"]
    with pytest.raises(InputError, match="did you mean 'age'"):
        survey_file.columns_of(path, FORM, ["aeg"])


def test_answers_are_texts_of_the_columns_that_were_named(path):
    answers = survey_file.read_answers(path, FORM, ["sex", "column 3"])
    assert list(answers.columns) == ["sex", "column 3"]
    assert survey_file.values_of(path, FORM, "sex") == ["f", "m"]


def test_values_of_a_parquet_file_keep_their_blanks(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "units.parquet"
    parquet.write_table(arrow.table({"unit": [" g", "g", "NaN", "", None]}), path)
    assert survey_file.values_of(path, TextForm(), "unit") == ["", " g", "NaN", "g"]


def test_too_many_values_are_no_list(path, monkeypatch):
    monkeypatch.setattr(survey_file, "MOST_VALUES", 1)
    with pytest.raises(InputError, match="at most 1 values"):
        survey_file.values_of(path, FORM, "sex")
