"""The JSON Schema of entries of the registry, as `filled_entry` writes them.

An empty text is one that somebody fills in. The registry's own template knows further
keys, so that others may stand beside these.
"""

from __future__ import annotations

from typing import Any

from blowfish_fast.apps.cli.parsing.schemas import DIALECT

TEXT = {"type": "string"}
STATED = {"type": "string", "minLength": 1}
AMOUNT = {"type": "number", "exclusiveMinimum": 0}
PARAMETERS = {
    "oneOf": [
        {
            "type": "object",
            "properties": {"epsilon": AMOUNT},
            "required": ["epsilon"],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {"rho": AMOUNT, "delta": {**AMOUNT, "exclusiveMaximum": 1}},
            "required": ["rho"],
            "additionalProperties": False,
        },
    ],
    "description": "What one release spends: epsilon, or rho with or without a delta.",
}


def registry_schema() -> dict[str, Any]:
    """Return what an entry holds, section by section.

    Returns
    -------
    dict
        The schema, as plain data.
    """
    sections = {
        "basic": _object(
            {
                "name": STATED,
                "data_curators": _list(
                    _object({"data_curator_name": TEXT, "data_curator_type": TEXT})
                ),
                "description": STATED,
                "intended_use": TEXT,
                "data_product_type": STATED,
                "data_product_region": TEXT,
                "data_product_sector": TEXT,
                "publication_date": {
                    "type": "string",
                    "pattern": "^([0-9]{4}-[0-9]{2}-[0-9]{2})?$",
                    "description": "Of the charge; empty where no ledger was named.",
                },
            }
        ),
        "dp_variant": _object(
            {
                "variant_name": {
                    "type": "string",
                    "pattern": "^(Blowfish privacy \\()?(Pure|Zero-concentrated) DP",
                    "description": "Blowfish privacy where a policy has fewer secrets.",
                },
                "data_domain": STATED,
                "unprotected_quantities": STATED,
            }
        ),
        "privacy_loss": _object(
            {
                "privacy_unit": {"enum": ["Person-level", "Record-level"]},
                "privacy_unit_details": STATED,
                "number_of_privacy_units": {"type": "integer", "minimum": 1},
                "privacy_parameters": PARAMETERS,
                "privacy_parameters_details": STATED,
            }
        ),
        "deployment_model": _object(
            {
                "model_name": STATED,
                "trust_assumptions": STATED,
                "release_type": {"enum": ["", "One release", "Many releases"]},
                "release_type_details": TEXT,
                "data_source_type": TEXT,
                "access_type": STATED,
            }
        ),
        "implementation": _object(
            {
                "mechanisms": STATED,
                "composition": TEXT,
                "post_processing": STATED,
                "justification": TEXT,
                "additional_information": STATED,
            }
        ),
        "administrative": _object(
            {
                "evidence_sources": {
                    "type": "object",
                    "minProperties": 1,
                    "additionalProperties": _object(
                        {
                            "evidence_source_type": STATED,
                            "citation": _object({"title": STATED, "url": TEXT}),
                        }
                    ),
                },
                "status": STATED,
                "registry_authors": _list(TEXT),
                "tier": {"type": "integer"},
            }
        ),
    }
    slug = {"type": "string", "pattern": "^[a-z0-9]+(-[a-z0-9]+)*$"}
    entry = _object({"url_slug": slug, "deployment": _object(sections)})
    return {"$schema": DIALECT, "title": "An entry of the registry", **entry}


def _object(keys: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object that has all of these keys, and maybe others."""
    return {"type": "object", "properties": keys, "required": [*keys]}


def _list(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item, "minItems": 1}
