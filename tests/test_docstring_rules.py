"""The checker of docstrings finds what is not described: `.ci/docstrings.py`."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

pytest.importorskip("numpydoc")

ROOT = Path(__file__).parent.parent
SOURCE = '''
def scaled(values, factor):
    """Return values times a factor.
{parameters}
    Returns
    -------
    list
        The products.
    """


@dataclass(frozen=True)
class Reading:
    """One reading of a meter.
{attributes}"""

    meter: str
    value: float
    unit: ClassVar[str] = "kWh"
    digest: str = field(init=False)
    _cache: int = 0
    shown: str = option(None, "Described by --help.")
'''
PARAMETERS = """
    Parameters
    ----------
    values : list
        The numbers.
    factor : float
        What each is multiplied by.
"""
ATTRIBUTES = """
    Attributes
    ----------
    meter : str
        Its number.
    value : float
        In kilowatt hours.
    """


@pytest.fixture(scope="module")
def checker():
    spec = spec_from_file_location("docstrings", ROOT / ".ci" / "docstrings.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def faults(checker, tmp_path, monkeypatch):
    monkeypatch.setattr(checker, "ROOT", tmp_path)

    def check(parameters=PARAMETERS, attributes=ATTRIBUTES):
        path = tmp_path / "meters.py"
        path.write_text(SOURCE.format(parameters=parameters, attributes=attributes))
        return [line.split(": ", 1)[1] for line in checker.file_faults(path)]

    return check


def test_a_described_file_has_no_fault(faults):
    assert faults() == []


def test_a_parameter_that_is_not_listed_is_a_fault(faults):
    lacking = PARAMETERS.partition("    factor")[0]
    (fault,) = faults(parameters=lacking)
    assert fault.startswith("PR01 scaled:")
    assert "factor" in fault


def test_a_field_that_is_not_listed_is_a_fault_whatever_makes_the_class(faults):
    # What --help describes, and what nobody passes, is not asked for.
    assert faults(attributes="    ") == [
        "FD01 Reading: fields ['meter', 'value'] are not listed"
    ]
    lacking = ATTRIBUTES.replace("    value : float\n        In kilowatt hours.\n", "")
    assert faults(attributes=lacking) == [
        "FD01 Reading: fields ['value'] are not listed"
    ]


def test_a_field_is_described_by_a_sentence(faults):
    blank = ATTRIBUTES.replace("        In kilowatt hours.\n", "")
    assert faults(attributes=blank) == [
        "FD02 Reading: field 'value' has no description"
    ]
    unfinished = ATTRIBUTES.replace("hours.", "hours")
    assert faults(attributes=unfinished) == [
        "FD03 Reading: the description of 'value' does not end with a period"
    ]
