"""An entry of the public registry of differential-privacy deployments, from a release.

    basic              who publishes what; what a release cannot tell is left to fill in
    dp_variant         pure, concentrated, or one under a policy; cells; what is public
    privacy_loss       whose data a unit is, and the parameters
    deployment_model   one release or many, by the ledger
    implementation     mechanism, composition by the ledger, post-processing
    administrative     a draft, to be sent by whoever answers for it

The keys are those of the template of the registry's data, registry.opendp.org; it is
written as YAML, with a comment where somebody has to fill in.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from blowfish_fast.accounting.ledger import Ledger
from blowfish_fast.accounting.series.saved import SavedSeries
from blowfish_fast.accounting.statements import Entry
from blowfish_fast.apps.cli.printing import plural
from blowfish_fast.errors import InputError
from blowfish_fast.release.file import Release
from blowfish_fast.release.guarantee import recipe_name
from blowfish_fast.release.tables_release import TablesRelease
from blowfish_fast.release.wide.look_release import LookRelease

FILL_IN = "fill in"
"""The comment behind a value that neither release nor ledger tells."""
ORDINARY = ("full", "add_remove")
"""Policies that are differential privacy as the registry knows it."""
USUAL_DELTA = "1e-9"
"""At which the epsilon of a rho is told, where no delta was stated."""


def title_of(shown: Release, stored: Release | SavedSeries) -> str:
    """Return what pages and entries call a release.

    Parameters
    ----------
    shown : Release
        What is shown: of a series its running total.
    stored : Release or SavedSeries
        What the file holds.

    Returns
    -------
    str
        The columns, or how many tables there are, and up to when.
    """
    if isinstance(shown, TablesRelease):
        return f"{len(shown.asked):,} tables of {shown.domain.ndim} columns"
    *names, last = shown.domain.column_names
    columns = " and ".join([*filter(None, [", ".join(names)]), last])
    upto = f" up to {stored.latest}" if isinstance(stored, SavedSeries) else ""
    return f"Counts by {columns}{upto}"


def filled_entry(
    release: Release | SavedSeries,
    title: str,
    name: str,
    ledger: Path | None,
    curator: str | None,
) -> str:
    """Return the entry of a release, as YAML.

    Parameters
    ----------
    release : Release or SavedSeries
        What was published.
    title : str
        What the entry calls it.
    name : str
        The file of the release.
    ledger : Path, optional
        The ledger that paid for it.
    curator : str, optional
        Who publishes it.

    Returns
    -------
    str
        The text of the entry, ending in a line break.

    Raises
    ------
    InputError
        If the release is an experiment, a series or a first look, or the ledger did
        not pay for it.
    """
    if isinstance(release, SavedSeries | LookRelease):
        raise InputError(
            "an entry of the registry is filled in from one release of counts",
            received="a series" if isinstance(release, SavedSeries) else "a first look",
            way_out="Name the file of a release, or fill in the registry's template",
        )
    if not release.private:
        raise InputError(
            "a registry lists what protects somebody",
            received="a release whose noise was seeded, an experiment",
            way_out="Release it without a seed",
        )
    paid = None if ledger is None else _paid_by(ledger, release)
    date = "" if paid is None else f"{paid['entry'].time:%Y-%m-%d}"
    guarantee = release.guarantee
    entry = {
        "url_slug": _slug(" ".join(filter(None, [title, curator, date[:4]]))),
        "deployment": {
            "basic": {
                "name": title,
                "data_curators": [
                    {"data_curator_name": curator or "", "data_curator_type": ""}
                ],
                "description": _description(release, title),
                "intended_use": "",
                "data_product_type": "Summary statistics",
                "data_product_region": "",
                "data_product_sector": "",
                "publication_date": date,
            },
            "dp_variant": {
                "variant_name": _variant(release),
                "data_domain": _cells(release),
                "unprotected_quantities": "What is promised says what is not: "
                f"{guarantee.meaning}.",
            },
            "privacy_loss": {
                "privacy_unit": _unit(release),
                "privacy_unit_details": "Two databases count as neighbours when "
                f"{guarantee.neighbours}.",
                "number_of_privacy_units": 1,
                "privacy_parameters": _parameters(release),
                "privacy_parameters_details": _parameter_words(release),
            },
            "deployment_model": {
                "model_name": "Central",
                "trust_assumptions": "The curator holds the records and runs the "
                "release; recipients get noisy values only.",
                "release_type": _releases(paid),
                "release_type_details": _spent_words(paid),
                "data_source_type": "",
                "access_type": "Non-interactive",
            },
            "implementation": {
                "mechanisms": _mechanism_words(release),
                "composition": _composition_words(paid),
                "post_processing": "Estimates, intervals and rounded counts are "
                "functions of the noisy values alone.",
                "justification": "",
                "additional_information": _file_words(release, name),
            },
            "administrative": {
                "evidence_sources": {
                    "release": {
                        "evidence_source_type": "Other public source",
                        "citation": {"title": Path(name).name, "url": ""},
                    }
                },
                "status": "Draft",
                "registry_authors": [""],
                "tier": 3,
            },
        },
    }
    return "\n".join(_lines(entry, 0)) + "\n"


def _paid_by(path: Path, release: Release) -> dict[str, Any]:
    """Return the charge of a release, and what the ledger has spent in all."""
    with Ledger(path) as book:
        charges = book.history()
        mechanism, stored = release.mechanism, release.to_bytes()
        for entry in charges:
            answer = book.replay(entry.request) if entry.state == "stored" else None
            if answer is None or answer.mechanism != mechanism:
                continue
            if answer.to_bytes() == stored:
                return {
                    "entry": entry,
                    "charges": len(charges),
                    "spent": book.currency.words(book.currency.granted(book.spent)),
                    "budget": book.currency.words(
                        book.currency.granted(book.budget.amount)
                    ),
                    "promise": book.policy.describe(book.currency),
                }
    raise InputError(
        "the ledger of an entry is the one that paid for the release",
        received=f"{path}, which holds no such answer",
        way_out="Name the ledger of the job, or leave --ledger out",
    )


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _description(release: Release, title: str) -> str:
    return f"{title}, with noise and with intervals: {release.domain!r}."


def _variant(release: Release) -> str:
    """Name the variant; a policy of fewer secrets is no differential privacy."""
    kind: Any = "Pure DP" if release.guarantee.budget.power == 1 else None
    name = kind or "Zero-concentrated DP"
    policy = release.guarantee.policy
    base = policy.get("base", policy) if policy.get("kind") == "per_person" else policy
    # A table whose columns have no policies of their own protects whole records.
    whole = base["kind"] == "table" and base["by_attribute"] is None
    if whole or base["kind"] in ORDINARY:
        return str(name)
    return f"Blowfish privacy ({name} under a policy)"


def _unit(release: Release) -> str:
    persons = release.guarantee.policy.get("kind") == "per_person"
    return "Person-level" if persons else "Record-level"


def _cells(release: Release) -> str:
    domain: Any = release.domain
    columns = zip(domain.column_names, domain.attributes, strict=True)
    listed = [f"{name}: {attribute.describe()}" for name, attribute in columns]
    return f"One record per line, over public cells. {'. '.join(listed).rstrip('.')}."


def _parameters(release: Release) -> dict[str, float]:
    budget = release.guarantee.budget
    if budget.power == 1:
        return {"epsilon": float(budget.amount)}
    stated = {} if budget.delta is None else {"delta": float(budget.delta)}
    return {"rho": float(budget.amount), **stated}


def _parameter_words(release: Release) -> str:
    guarantee = release.guarantee
    if guarantee.budget.power == 1:
        return str(guarantee)
    delta = guarantee.budget.delta or USUAL_DELTA
    epsilon = guarantee.epsilon_at(delta)
    return f"{guarantee} Epsilon is at most {epsilon:.4g} at a delta of {delta}."


def _releases(paid: dict[str, Any] | None) -> str:
    if paid is None:
        return ""
    return "One release" if paid["charges"] == 1 else "Many releases"


def _spent_words(paid: dict[str, Any] | None) -> str:
    if paid is None:
        return ""
    charges = plural(paid["charges"], "charge")
    return (
        f"The ledger holds {charges}: {paid['spent']} was spent of "
        f"{paid['budget']}, which is the most that everything together will cost."
    )


def _mechanism_words(release: Release) -> str:
    noise = "Laplace" if release.guarantee.budget.power == 1 else "Gaussian"
    return (
        f"{recipe_name(release)} of blowfish_fast {release.version}: discrete {noise} "
        "noise on whole numbers, drawn exactly from a secure source, and, where the "
        "mechanism adapts to the data, a private choice within the same budget; every "
        "price is computed again before its draw."
    )


def _composition_words(paid: dict[str, Any] | None) -> str:
    if paid is None:
        return ""
    entry: Entry = paid["entry"]
    return (
        f"Charge {entry.number} of a ledger that adds up prices under one policy: "
        f"{paid['promise']}. It refuses what would exceed {paid['budget']}."
    )


def _file_words(release: Release, name: str) -> str:
    digest = hashlib.sha256(release.to_bytes()).hexdigest()
    return f"The release is the file {Path(name).name}, SHA-256 {digest}."


def _lines(value: Any, depth: int) -> list[str]:
    """Return YAML; texts are quoted as in JSON, which YAML reads the same."""
    indent, lines = "  " * depth, []
    for key, item in value.items():
        if isinstance(item, dict):
            lines += [f"{indent}{key}:", *_lines(item, depth + 1)]
        elif isinstance(item, list):
            lines.append(f"{indent}{key}:")
            for part in item:
                inner = _lines(part, 0) if isinstance(part, dict) else [_scalar(part)]
                lines.append(f"{indent}  - {inner[0]}")
                lines += [f"{indent}    {line}" for line in inner[1:]]
        else:
            lines.append(f"{indent}{key}: {_scalar(item)}")
    return lines


def _scalar(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    if isinstance(value, float) and "." not in text:
        # Readers of YAML take 1e-06 for a text.
        text = text.replace("e", ".0e")
    return f"{text} # {FILL_IN}" if value == "" else text
