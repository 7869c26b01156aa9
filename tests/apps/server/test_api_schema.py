"""Whatever fits the OpenAPI schema, or nearly, is answered without a breakdown.

The short form; the long one is

    BLOWFISH_API_CASES=10000 python -m pytest tests/apps/server/test_api_schema.py
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, seed, settings

from blowfish_fast.apps.server.keys import CURATOR

schemathesis = pytest.importorskip(
    "schemathesis", reason="pip install 'blowfish_fast[browser]'"
)

pytestmark = pytest.mark.engines

CASES = int(os.environ.get("BLOWFISH_API_CASES", "200"))
"""Generated requests in all; the long form makes 10,000."""

CHECKS = [
    schemathesis.checks.not_a_server_error,
    schemathesis.checks.content_type_conformance,
    schemathesis.checks.response_schema_conformance,
    schemathesis.checks.status_code_conformance,
]


@pytest.mark.parametrize("name", [CURATOR, "ann"])
def test_no_case_breaks_the_server(served, name):
    schema = schemathesis.openapi.from_url(f"{served.url}/api/openapi.json")
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) > 15
    made = 0

    def check(case):
        nonlocal made
        made += 1
        # Those who are revoked on the way come back for the next case.
        if name != CURATOR and name not in served.workspace.keys.names("analyst"):
            served.secrets[name] = served.workspace.keys.make("analyst", name)
        headers = {"Authorization": f"Bearer {served.secrets[name]}"}
        case.call_and_validate(headers=headers, checks=CHECKS)

    each = max(4, CASES // (2 * len(operations)))
    number = 0
    # Some routes have few different requests: go round until all cases are made.
    while made < CASES / 2:
        for operation in operations:
            number += 1
            chosen = settings(
                max_examples=each,
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
            )
            chosen(seed(number)(given(case=operation.as_strategy())(check)))()
