"""All tables of surveys beside the plain split, and synthetic records that train."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn")

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
