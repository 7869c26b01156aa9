"""Every public name shows how it is used, in lines that run."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

import blowfish_fast as bf

ROOT = Path(__file__).parent.parent
PACKAGES = (
    *("", "accounting", "advice", "audit", "explorer", "interop", "kernels"),
    *("mechanisms", "partitions", "plotting", "policies", "selections", "strategies"),
    *("usefulness", "workloads"),
)
HANDED_TO_PEOPLE = (
    *("Domain", "Histogram", "Ledger", "Release", "Session", "SparseHistogram"),
    *("WideDomain", "mechanisms.Mechanism", "policies.Policy", "workloads.Workload"),
)
"""Classes whose every public method stands in some example."""


def public_objects():
    for package in PACKAGES:
        home = ".".join(filter(None, ("blowfish_fast", package)))
        module = getattr(bf, package) if package else bf
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isclass(value) or inspect.isfunction(value):
                yield f"{home}.{name}", value


def test_every_public_name_has_a_running_example():
    lacking = [
        name for name, value in public_objects() if ">>>" not in (value.__doc__ or "")
    ]
    assert lacking == []


def example_lines():
    for path in (ROOT / "blowfish_fast").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                yield from _lines(ast.get_docstring(node) or "")
    for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        yield from _lines(path.read_text())


def _lines(text):
    return (one for one in text.splitlines() if re.match(r"\s*(>>>|\.\.\.) ", one))


@pytest.mark.long
def test_every_method_handed_to_people_stands_in_an_example():
    words = set(re.findall(r"\.(\w+)", " ".join(example_lines())))
    missing = []
    for name in HANDED_TO_PEOPLE:
        kind = bf
        for part in name.split("."):
            kind = getattr(kind, part)
        missing += [
            f"{name}.{method}"
            for method in dir(kind)
            if not method.startswith("_")
            and method not in words
            and callable(getattr(kind, method))
        ]
    assert missing == []
