"""Budgets in epsilon and in rho: amounts, conversions, what a choice may use."""

from __future__ import annotations

import ast
import decimal
import math
from fractions import Fraction
from pathlib import Path

import pytest

import blowfish_fast as bf
from blowfish_fast.errors import BudgetError, EpsilonError
from blowfish_fast.measure import budgets
from blowfish_fast.measure.budgets import Budget, epsilon_of, odds_exponent, rho_of

RHO = Budget(Fraction(1, 100), 2)


def test_a_group_divides_epsilon_by_its_size_and_rho_by_the_square():
    assert Budget(Fraction(1)).over(3).amount == Fraction(1, 3)
    assert RHO.over(3).amount == Fraction(1, 900)
    assert Budget(Fraction(1)).at_distance(3).amount == 3
    assert RHO.at_distance(3).amount == Fraction(9, 100)


def test_two_currencies_do_not_mix():
    with pytest.raises(BudgetError, match="two currencies"):
        _ = RHO + Budget(Fraction(1))
    with pytest.raises(BudgetError, match="two currencies"):
        _ = Fraction(1) > RHO
    assert Fraction(1, 100) != RHO
    assert Budget(Fraction(1, 2)) == Fraction(1, 2)


def test_epsilon_of_a_budget_in_rho_is_refused():
    with pytest.raises(EpsilonError, match="has no epsilon of its own"):
        _ = RHO.epsilon
    assert Budget(Fraction(1, 2)).rho == Fraction(1, 8)


@pytest.mark.parametrize(
    ("terms", "reason"),
    [
        ({}, "received none"),
        ({"rho": 1, "epsilon": 1}, "rho beside another"),
        ({"rho": 1, "delta": "1e-9"}, "rho beside another"),
        ({"delta": "1e-9"}, "received none"),
        ({"rho": 0}, "between 1e-12 and 1e9"),
        ({"epsilon": 1, "delta": 0}, "above 0 and below 1"),
        ({"epsilon": 1, "delta": 1}, "above 0 and below 1"),
        ({"epsilon": "1e-9", "delta": "1e-9"}, "no rho of 1e-12"),
    ],
)
def test_a_budget_is_stated_in_one_way(terms, reason):
    with pytest.raises(EpsilonError, match=reason):
        Budget.stated(**terms)


@pytest.mark.parametrize(
    ("epsilon", "delta", "rho"),
    [
        ("1", "1e-9", "0.014973057673"),
        ("0.1", "1e-9", "0.000177138447"),
        ("1", "1e-6", "0.024355970359"),
    ],
)
def test_conversions_give_the_certified_rho(epsilon, delta, rho):
    assert rho_of(epsilon, delta) == Fraction(rho)
    # And back: what that rho implies is no more than was asked, and hardly less.
    back = epsilon_of(rho_of(epsilon, delta), delta)
    assert Fraction(epsilon) * (1 - Fraction(1, 10**7)) < back <= Fraction(epsilon)


@pytest.mark.parametrize(("epsilon", "delta"), [("0.1", "0.5"), ("0.01", "0.3")])
def test_rho_may_exceed_epsilon_where_delta_is_large(epsilon, delta):
    rho, terms = rho_of(epsilon, delta), (Fraction(epsilon), Fraction(delta))
    assert rho > terms[0]
    assert budgets._implies(rho, *terms)
    assert not budgets._implies(rho + Fraction(1, budgets.RHO_UNITS), *terms)


def test_conversions_to_epsilon_are_rounded_up():
    assert round(float(epsilon_of("0.01", "1e-9")), 4) == 0.8102
    assert round(float(epsilon_of("0.01", "1e-6")), 4) == 0.6217
    assert float(epsilon_of("0.001", "1e-9")) == 0.245119254


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-9), (0.1, 1e-6), (4.0, 1e-5)])
def test_rho_is_never_above_that_of_exact_gaussian_accounting(epsilon, delta):
    """A Gaussian of that rho keeps (epsilon, delta) by its exact formula."""
    rho = float(rho_of(repr(epsilon), repr(delta)))
    # One row of sensitivity 1: rho = 1 / (2 sigma^2), loss N(rho, 2 rho).
    root = math.sqrt(2.0 * rho)

    def above(x):
        return 0.5 * math.erfc(x / math.sqrt(2.0))

    exact = above(epsilon / root - root / 2) - math.exp(epsilon) * above(
        epsilon / root + root / 2
    )
    assert exact <= delta


def test_decimals_do_not_depend_on_the_callers_context():
    wanted = rho_of("1", "1.03e-6"), epsilon_of("0.02", "1e-7")
    budgets._largest_rho.cache_clear()
    budgets._least_epsilon.cache_clear()
    with decimal.localcontext(prec=3):
        assert (rho_of("1", "1.03e-6"), epsilon_of("0.02", "1e-7")) == wanted


def test_the_exponent_of_the_odds_is_rounded_up_and_bounds_both_tails():
    for rho, delta in ((0.01, 1e-9), (0.0149, 1e-9), (2.0, 1e-6), (1e-6, 1e-12)):
        t = odds_exponent(Fraction(repr(rho)), Fraction(repr(delta)))
        bound = (1 + math.exp(-t)) * math.exp(-((t - rho) ** 2) / (4 * rho))
        assert bound <= delta
        less = t * 0.9
        assert (1 + math.exp(-less)) * math.exp(
            -((less - rho) ** 2) / (4 * rho)
        ) > delta


def test_a_choice_gets_the_epsilon_of_its_range_and_parts():
    assert float(RHO.for_choice()) == pytest.approx(0.1414, abs=1e-4)
    assert float(RHO.for_choice(1)) == pytest.approx(0.2828, abs=1e-4)
    eighths = (Fraction(1, 8),) * 8
    assert float(RHO.for_choice(1, eighths)) == pytest.approx(0.8, abs=1e-4)
    for parts in ((), eighths, (Fraction(1, 2), Fraction(1, 4), Fraction(1, 4))):
        epsilon = RHO.for_choice(1, parts)
        shares = sum(part**2 for part in parts) or 1
        assert epsilon**2 * shares / 8 <= RHO.amount
    assert Budget(Fraction(1, 3)).for_choice(2, eighths) == Fraction(1, 3)


def test_plain_data_has_one_currency():
    stated = Budget.stated(epsilon=1, delta="1e-9")
    plain = stated.to_dict()
    assert set(plain) == {"rho", "delta"}
    assert Budget.from_dict(plain) == stated
    assert Budget.from_dict(plain).delta == stated.delta
    with pytest.raises(EpsilonError, match="nobody spends"):
        Budget.from_dict({"epsilon": "1", "rho": "1"})


def test_names_at_the_top():
    assert bf.budgets.rho_of(epsilon=1, delta="1e-9") == Fraction("0.014973057673")
    assert float(bf.budgets.epsilon_of(rho="0.01", delta="1e-9")) == 0.810174468


def test_the_epsilon_of_equal_noise_is_twice_the_root_of_rho():
    assert budgets.equal_noise_epsilon(RHO) == pytest.approx(0.2)
    assert budgets.equal_noise_epsilon(Fraction(3, 10)) == pytest.approx(0.3)


SCALES_BY_A_GROUP = {
    "audit/grey_box.py": "raised to the power of the budget in the next line",
    "measure/budgets.py": "the two methods",
    "measure/sensitivity/policy.py": "distances between answers, not amounts",
    "policies/constrained.py": "distances between answers, not amounts",
    "mechanisms/transformed.py": "the mean size of Laplace noise, for tuning",
}


def _scaled_by_a_group(path):
    """Lines that multiply or divide by the size of a group."""
    source = path.read_text()
    # Most files do not name one, and parsing all would take most of the test.
    for node in ast.walk(ast.parse(source)) if "group_size" in source else ():
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
            for side in (node.left, node.right):
                name = getattr(side, "attr", getattr(side, "id", ""))
                if name in ("group_size", "_group_size"):
                    yield ast.unparse(node)


def test_nobody_but_a_budget_scales_an_amount_by_the_size_of_a_group():
    # In rho the square of the group counts: `over` and `at_distance` know, others may
    # not. Found anew in the source, so that a new line has to be looked at.
    package = Path(bf.__file__).parent
    found = {
        str(path.relative_to(package)): lines
        for path in package.rglob("*.py")
        if (lines := list(_scaled_by_a_group(path)))
    }
    assert found.keys() <= SCALES_BY_A_GROUP.keys(), found
    assert "group_size**self.power" in (package / "measure/budgets.py").read_text()


def test_equal_budgets_are_found_under_one_key():
    """A pure budget equals its epsilon, so both have one hash; rho equals neither."""
    kept = {Budget(Fraction(1, 2)): "epsilon", Budget(Fraction(1, 2), 2): "rho"}
    assert kept[Fraction(1, 2)] == "epsilon"
    assert kept[Budget(Fraction(2, 4), 2)] == "rho"
    assert len(kept) == 2


@pytest.mark.parametrize("rho", ["1e-12", "1e-6", "1", "1e9"])
@pytest.mark.parametrize("delta", ["1e-300", "1e-9", "0.5", "near one"])
def test_the_least_epsilon_holds_at_every_corner(rho, delta):
    """The search begins at an epsilon that holds, or would return one that does not."""
    small = 1 - Fraction(1, 10**40) if delta == "near one" else Fraction(delta)
    found = epsilon_of(rho, small)
    assert budgets._implies(Fraction(rho), found, small)
    unit = Fraction(1, budgets.EPSILON_UNITS)
    below = found - unit
    assert below <= 0 or not budgets._implies(Fraction(rho), below, small)


@pytest.mark.parametrize("rho", ["1e-12", "1e-3", "1e9"])
@pytest.mark.parametrize("delta", ["1e-300", "0.01", "near one"])
def test_odds_stay_within_the_exponent_that_is_stated(rho, delta):
    small = 1 - Fraction(1, 10**40) if delta == "near one" else Fraction(delta)
    t, amount = odds_exponent(Fraction(rho), small), float(Fraction(rho))
    tail = math.log1p(math.exp(-t)) - (t - amount) ** 2 / (4 * amount)
    assert t >= amount
    assert tail <= math.log(float(small)) + 1e-12
