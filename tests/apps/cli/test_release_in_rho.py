"""``blowfish release`` in rho: the same job in either currency."""

from __future__ import annotations

import pytest

import blowfish_fast as bf
from tests.apps.cli.test_release_command import FACTS, refused, run, told

pytestmark = pytest.mark.usefixtures("empty_folder")


def test_the_same_job_runs_in_either_currency(empty_folder):
    stated = FACTS[:-2]
    pure = told(*stated, "--epsilon", "0.5", "--dry-run")
    concentrated = told(*stated, "--rho", "0.01", "--dry-run")
    both = told(*stated, "--epsilon", "1", "--delta", "1e-9", "--dry-run")
    assert pure["epsilon"] == "1/2"
    assert concentrated["rho"] == "1/100"
    assert "epsilon" not in concentrated
    assert both["rho"] == "14973057673/1000000000000"
    assert concentrated["promise"].startswith("With rho = 0.01:")
    paid = [*stated, "--rho", "0.01", "--ledger", "rho.ledger", "--budget", "0.015"]
    said = run(*paid, "--request", "first")
    assert "rho = 0.01; 0.005 of 0.015 remains" in said
    with bf.Ledger("rho.ledger") as ledger:
        assert ledger.currency.name == "rho"
    assert "rho = 0.01" in run("explain", "release.blowfish")
    assert "has spent rho = 0.01" in run(
        "answer", "release.blowfish", "--where", "age=20:30"
    )
    stated += ["--out", "other"]
    refusal = refused(*stated, "--rho", "0.01", "--mechanism", "laplace", "--dry-run")
    assert "Gaussian" in str(refusal)
    refusal = refused(*stated, "--rho", "0.01", "--epsilon", "1", "--dry-run")
    assert "rho beside another" in str(refusal)
