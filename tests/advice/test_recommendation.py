"""Recommendations: order, marks, reasons, and that they repeat."""

from __future__ import annotations

import math

import numpy as np
import pytest

import blowfish_fast as bf
import blowfish_fast.advice.recommendation as recommendation
from blowfish_fast.errors import InputError
from blowfish_fast.mechanisms.registry import MECHANISMS

LINE = bf.Domain(64)
RANGES = bf.workloads.Ranges.random(LINE, 50, rng=1)
POLICY = bf.policies.AddRemove(LINE)


@pytest.fixture(scope="module")
def advice():
    return bf.recommend(POLICY, RANGES, epsilon="0.1", records=2000, trials=1, rng=2)


def test_best_comes_first_and_refusals_last(advice):
    errors = [one.error for one in advice]
    assert errors == sorted(errors)
    kinds = [one.kind for one in advice]
    refused = kinds.count("refused")
    assert set(kinds[len(kinds) - refused :]) <= {"refused"}
    assert advice.best is advice.advice[0]
    assert all(one.reason for one in advice if one.kind == "refused")


def test_predicted_errors_are_those_of_compare(advice):
    table = bf.compare(POLICY, RANGES, epsilon="0.1")
    for one in advice:
        if one.kind == "predicted":
            assert one.error == pytest.approx(math.sqrt(table[one.name].mean))
            assert not one.by_shape


def test_what_depends_on_data_is_marked_typical(advice):
    for name in ("ahp", "dawa", "efpa", "mwem", "php", "structure_first"):
        assert name in MECHANISMS
        one = advice[name]
        assert one.kind == "typical"
        assert set(one.by_shape) == set(advice.shapes)
        logs = [math.log(error) for error in one.by_shape.values()]
        assert one.error == pytest.approx(math.exp(np.mean(logs)))


def test_every_usable_line_can_release(advice):
    for one in advice:
        assert (one.mechanism is None) == (one.kind == "refused")
        if one.mechanism is not None:
            assert (
                one.mechanism.epsilon == bf.Dawa(POLICY, RANGES, epsilon=".1").epsilon
            )
    release = advice.best.mechanism.release(np.ones(64, int))
    assert release.answer(RANGES).shape == (50,)


def test_the_same_seed_gives_the_same_advice(advice):
    asked = bf.workloads.Ranges.random(LINE, 50, rng=1)
    again = bf.recommend(POLICY, asked, epsilon="0.1", records=2000, trials=1, rng=2)
    assert again.rows == advice.rows
    other = bf.recommend(POLICY, asked, epsilon="0.1", records=2000, trials=1, rng=3)
    assert other["dawa"].by_shape != advice["dawa"].by_shape


def test_a_question_is_simulated_once(advice, monkeypatch):
    def simulated(*given, **named):
        raise AssertionError("simulated again")

    monkeypatch.setattr(recommendation, "typical_errors", simulated)
    again = bf.recommend(POLICY, RANGES, epsilon="0.1", records=2000, trials=1, rng=2)
    assert again.rows == advice.rows
    for changed in ({"records": 2001}, {"epsilon": "0.2"}, {"rng": 3}):
        question = {"epsilon": "0.1", "records": 2000, "trials": 1, "rng": 2}
        with pytest.raises(AssertionError, match="simulated again"):
            bf.recommend(POLICY, RANGES, **{**question, **changed})


def test_without_a_seed_one_is_drawn(advice):
    question = {"epsilon": "0.1", "records": 2000, "trials": 1}
    one, other = (
        bf.recommend(POLICY, bf.workloads.Ranges.random(LINE, 50, rng=1), **question)
        for _ in range(2)
    )
    assert one["dawa"].by_shape != other["dawa"].by_shape
    assert one["vertex"].error == other["vertex"].error


def test_reasons_are_sentences_about_this_question(advice):
    said = " ".join(advice.because)
    assert advice.best.name in said
    assert "64 cells" in said
    assert all(one.endswith(".") for one in advice.because)
    text = str(advice)
    assert "typical" in text
    assert "predicted" in text
    assert "not admitted: " in text
    assert text.endswith(advice.because[-1])
    assert repr(advice).startswith("Recommendation(")


def test_full_cells_are_told_from_faint_ones():
    small = bf.Domain(16)
    policy, cells = bf.policies.AddRemove(small), bf.workloads.Identity(small)
    for records, words in ((4, "well above the 0.25"), (10**7, "gains little")):
        said = bf.recommend(policy, cells, epsilon=1, records=records, trials=1).because
        assert any(words in one for one in said), said


def test_under_a_line_policy_prefix_sums_win():
    line = bf.policies.Line(LINE)
    prefixes = bf.workloads.Prefixes(LINE)
    advice = bf.recommend(line, prefixes, epsilon="0.5", records=2000, trials=1)
    assert advice.best.name in ("ordered_fitted", "transformed", "ordered")
    assert advice.best.error <= advice.best_predicted.error
    assert advice["vertex"].error > 3 * advice.best.error


def test_grids_and_all_ranges_work():
    grid = bf.Domain((6, 6))
    boxes = bf.workloads.Rectangles.random(grid, 20, rng=1)
    advice = bf.recommend(
        bf.policies.Full(grid), boxes, epsilon=1, records=500, trials=1
    )
    assert math.isfinite(advice.best.error)
    assert advice["php"].kind == "refused"
    assert "one ordered attribute" in advice["php"].reason
    everything = bf.workloads.AllRanges(LINE)
    advice = bf.recommend(POLICY, everything, epsilon=1, records=500, trials=1)
    assert advice["dawa"].kind == "typical"


def test_choosing_gives_a_mechanism_for_each_shape(advice):
    chooser = advice.choose_privately(share="0.1")
    assert chooser.epsilon == advice.best.mechanism.epsilon
    assert set(chooser.shape_names) == set(advice.shapes)
    for shape, candidate in zip(chooser.shape_names, chooser.candidates, strict=True):
        assert candidate is advice.best_on(shape).mechanism
        least = advice.best_on(shape)
        for one in advice:
            if one.mechanism is not None:
                assert least.by_shape.get(shape, least.error) <= one.by_shape.get(
                    shape, one.error
                )
    release = chooser.release(advice.shapes["spikes"], rng=1)
    assert release.details["resembles"] in advice.shapes


def test_progress_reaches_its_end():
    seen = []
    small = bf.Domain(8)
    bf.recommend(
        bf.policies.Full(small),
        bf.workloads.Identity(small),
        epsilon=1,
        records=50,
        trials=1,
        progress=lambda *step: seen.append(step),
    )
    done, total, _ = seen[-1]
    assert done == total == len(seen) - 1
    assert [one[0] for one in seen] == list(range(total + 1))


def test_bad_input_is_refused():
    with pytest.raises(InputError, match="records must lie"):
        bf.recommend(POLICY, RANGES, epsilon=1, records=-1)
    with pytest.raises(InputError, match="trials must be at least 1"):
        bf.recommend(POLICY, RANGES, epsilon=1, records=10, trials=0)
