"""An entry of the public registry: what release and ledger tell, and nothing else."""

from __future__ import annotations

import hashlib
import json

import pytest

import blowfish_fast as bf
from blowfish_fast.accounting.series.saved import SavedSeries
from blowfish_fast.apps.cli.files.registry_entry import filled_entry
from blowfish_fast.apps.cli.files.registry_keys import registry_schema
from blowfish_fast.apps.cli.main import run_command
from blowfish_fast.apps.description.shipped import shipped_schema
from blowfish_fast.errors import InputError

yaml = pytest.importorskip("yaml")
jsonschema = pytest.importorskip("jsonschema")
AGES = bf.Domain.from_edges(range(0, 81, 10), name='age "in years"')
FULL = bf.policies.Full(AGES)
SECTIONS = ["basic", "dp_variant", "privacy_loss", "deployment_model"]
SECTIONS += ["implementation", "administrative"]


def released(policy=FULL, **budget):
    kind = bf.Gaussian if {"rho", "delta"} & set(budget) else bf.Laplace
    return kind(policy, **(budget or {"epsilon": "0.5"})).release([9] * 8)


def entry_of(release, ledger=None, curator=None):
    text = filled_entry(release, "Counts by age", "ages.blowfish", ledger, curator)
    read = yaml.safe_load(text)
    assert list(read) == ["url_slug", "deployment"]
    assert list(read["deployment"]) == SECTIONS
    assert problems_of(read) == []
    return text, read["deployment"]


def problems_of(entry):
    """Return what the shipped schema has to say against an entry."""
    check = jsonschema.Draft202012Validator(shipped_schema("registry"))
    return [problem.message for problem in check.iter_errors(entry)]


def test_a_release_and_its_ledger_fill_in_an_entry(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with bf.Ledger("book", epsilon=2, policy=FULL) as ledger:
        mechanism = bf.Laplace(FULL, epsilon="0.5")
        release = ledger.release(mechanism, [9] * 8, "ages")
        ledger.release(bf.Laplace(FULL, epsilon="0.25"), [9] * 8, "again")
    release.save("ages.blowfish")
    words = ["report", "ages.blowfish", "--registry", "entry.yaml"]
    words += ["--ledger", "book", "--curator", 'Office: of "ages"', "--json"]
    assert run_command(words) == 0
    assert json.loads(capsys.readouterr().out) == {"registry": "entry.yaml"}
    read = yaml.safe_load((tmp_path / "entry.yaml").read_text())
    assert problems_of(read) == []
    entry = read["deployment"]
    (who,) = entry["basic"]["data_curators"]
    assert who["data_curator_name"] == 'Office: of "ages"'
    year = str(entry["basic"]["publication_date"])[:4]
    assert read["url_slug"] == f"counts-by-age-in-years-office-of-ages-{year}"
    assert entry["dp_variant"]["variant_name"] == "Pure DP"
    assert 'age "in years": 0 to 80' in entry["dp_variant"]["data_domain"]
    assert entry["privacy_loss"]["privacy_parameters"] == {"epsilon": 0.5}
    assert entry["privacy_loss"]["privacy_unit"] == "Record-level"
    assert "any other" in entry["privacy_loss"]["privacy_unit_details"]
    assert entry["deployment_model"]["release_type"] == "Many releases"
    spent = entry["deployment_model"]["release_type_details"]
    assert "2 charges: eps = 0.75 was spent of eps = 2" in spent
    assert entry["implementation"]["mechanisms"].startswith("laplace of blowfish_fast")
    assert "eps = 2" in entry["implementation"]["composition"]
    digest = hashlib.sha256((tmp_path / "ages.blowfish").read_bytes()).hexdigest()
    assert digest in entry["implementation"]["additional_information"]


def test_the_shipped_schema_is_what_is_made_and_refuses_what_is_no_entry():
    assert shipped_schema("registry") == registry_schema()
    jsonschema.Draft202012Validator.check_schema(registry_schema())
    text = filled_entry(released(), "Counts by age", "ages.blowfish", None, None)
    for path, value in (
        ("deployment privacy_loss privacy_unit", "Household-level"),
        ("deployment privacy_loss privacy_parameters", {"epsilon": 0}),
        ("deployment privacy_loss privacy_parameters", {"epsilon": 1, "rho": 1}),
        ("deployment dp_variant variant_name", "Approximate DP"),
        ("deployment basic publication_date", "yesterday"),
        ("deployment implementation mechanisms", ""),
        ("url_slug", "Counts by age"),
    ):
        entry = yaml.safe_load(text)
        *parents, last = path.split()
        place = entry
        for name in parents:
            place = place[name]
        place[last] = value
        assert problems_of(entry), path
        del place[last]
        assert problems_of(entry), path


def test_what_nobody_stated_is_left_to_fill_in():
    text, entry = entry_of(released())
    assert entry["basic"]["intended_use"] == ""
    assert entry["deployment_model"]["release_type"] == ""
    assert entry["implementation"]["composition"] == ""
    blank = [line for line in text.splitlines() if '""' in line]
    assert len(blank) == 13
    assert all(line.endswith("# fill in") for line in blank)


def test_variants_and_units_are_those_of_the_promise():
    _, rho = entry_of(released(rho="0.1"))
    assert rho["dp_variant"]["variant_name"] == "Zero-concentrated DP"
    assert rho["privacy_loss"]["privacy_parameters"] == {"rho": 0.1}
    details = rho["privacy_loss"]["privacy_parameters_details"]
    assert "Epsilon is at most" in details
    assert details.endswith("at a delta of 1e-9.")
    _, stated = entry_of(released(epsilon=1, delta="1e-6"))
    assert stated["privacy_loss"]["privacy_parameters"]["delta"] == 1e-6
    # A policy that leaves something open is not said to be differential privacy.
    _, line = entry_of(released(bf.policies.Line(AGES)))
    assert line["dp_variant"]["variant_name"].startswith("Blowfish privacy (Pure DP")
    persons = FULL.per_person(2)
    data = bf.Histogram.from_records(
        AGES, {'age "in years"': [3, 4, 5], "who": [1, 1, 2]}, person="who", at_most=2
    )
    _, person = entry_of(bf.Laplace(persons, epsilon=1).release(data))
    assert person["privacy_loss"]["privacy_unit"] == "Person-level"
    assert person["dp_variant"]["variant_name"] == "Pure DP"


@pytest.mark.long
@pytest.mark.parametrize("presence", [False, True, "only"])
def test_tables_of_whole_records_are_differential_privacy(presence):
    two = bf.Domain((3, 2), names=["age", "sex"])
    asked = bf.workloads.Tables(two, ways=1)
    whole = bf.policies.TablePolicy(two, presence=presence)
    by_column = bf.policies.TablePolicy(
        two, {"sex": bf.policies.Full(bf.Domain(2, names="sex"))}
    )
    for policy, variant in [(whole, "Pure DP"), (by_column, "Blowfish privacy (Pure")]:
        mechanism = bf.Contingency(policy, asked, epsilon=1)
        records = {"age": [0, 1, 2, 2], "sex": [0, 1, 1, 0]}
        counts = bf.TableCounts.from_records(mechanism, records)
        _, entry = entry_of(mechanism.release(counts))
        assert entry["dp_variant"]["variant_name"].startswith(variant)


def test_what_no_entry_is_made_of_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    seeded = bf.Laplace(FULL, epsilon=1).release([9] * 8, rng=1)
    with pytest.raises(InputError, match="an experiment"):
        entry_of(seeded)
    with bf.Ledger("book", epsilon=2, policy=FULL) as ledger:
        ledger.release(bf.Laplace(FULL, epsilon=1), [9] * 8)
        ledger.release(
            bf.Hierarchy(FULL, bf.workloads.AllRanges(AGES), epsilon=1), [9] * 8
        )
    with pytest.raises(InputError, match="holds no such answer"):
        entry_of(released(), tmp_path / "book")
    series = SavedSeries.__new__(SavedSeries)
    with pytest.raises(InputError, match="received a series"):
        entry_of(series)
    released().save("ages.blowfish")
    for wrong in ([], ["--curator", "me"], ["--registry", "entry.txt"]):
        assert run_command(["report", "ages.blowfish", *wrong]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "--registry FILE.yaml" in told
    assert ".yaml" in told
