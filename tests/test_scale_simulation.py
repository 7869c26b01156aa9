"""The plan for 10^10 records is carried on from measured runs, and checks itself."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def module():
    path = ROOT / "examples" / "scale_simulation.py"
    spec = importlib.util.spec_from_file_location("scale_simulation", path)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


SIMULATION = module()
TARGET = SIMULATION.Target(1e10, 2.0**28, 64, 10.0, 128.0, None)


def test_linear_costs_are_carried_on_exactly():
    sizes = [2.0**14, 2.0**16, 2.0**18, 2.0**20]
    seconds = [size * 1e-7 for size in sizes]
    low, high = SIMULATION.Between.at(2.0**28, sizes, seconds)
    assert low == pytest.approx(2**28 * 1e-7)
    assert high == pytest.approx(low)
    assert SIMULATION.Between.check(sizes, seconds) == "1.00 to 1.00"


def test_growing_costs_lie_between():
    sizes = [2.0**14, 2.0**16, 2.0**18, 2.0**20]
    seconds = [size**1.2 * 1e-8 for size in sizes]
    low, high = SIMULATION.Between.at(2.0**28, sizes, seconds)
    assert high == pytest.approx((2.0**28) ** 1.2 * 1e-8)
    assert low == pytest.approx(high / 2.0 ** (8 * 0.2))
    assert SIMULATION.Between.check(sizes[:3], seconds[:3]) == "-"


def counted(per_record):
    return [
        {
            "records": records,
            "cells": cells,
            "filled": cells,
            "seconds": records * per_record(cells),
        }
        for cells in (2**12, 2**16, 2**20)
        for records in (10**5, 10**7)
    ]


def test_counts_are_carried_on_by_record_and_by_doubling():
    flat = counted(lambda cells: 4e-7)
    low, high = SIMULATION.counting_at(flat, 1e10, 2.0**28)
    assert low == pytest.approx(high) == pytest.approx(4000)
    assert SIMULATION.counting_check(flat) == "1.00 to 1.00"
    doubling = counted(lambda cells: 1e-8 * cells.bit_length())
    low, high = SIMULATION.counting_at(doubling, 1e10, 2.0**28)
    assert low == pytest.approx(1e10 * 21e-8)
    assert high == pytest.approx(1e10 * 29e-8)


def test_the_cost_is_what_the_reader_says_a_core_costs():
    target = TARGET._replace(price=0.05)
    (row,) = SIMULATION.counting_table(
        {"counting": counted(lambda cells: 3.6e-7)}, target
    )[2:]
    assert "1.00 to 1.00 core-hours, costs 0.05 to 0.05" in row
    assert "56.2 s" in row


def test_what_long_lines_declare_is_asked_of_the_mechanism():
    ranges = SIMULATION.declared_bytes("dawa, 10^4 ranges", 2**28)
    assert ranges * 2**28 < 40 * 2**30
    # Short lines declare more for each cell: the table does not carry that on.
    assert SIMULATION.declared_bytes("dawa, 10^4 ranges", 2**16) > 2 * ranges


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """What the quick form measures, run as its command."""
    kept = tmp_path_factory.mktemp("scale") / "runs.json"
    told = ["scale_simulation.py", "--quick", "--json", str(kept)]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "argv", told)
        SIMULATION.main()
    return json.loads(kept.read_text())


@pytest.mark.long
def test_quick_runs_give_a_whole_plan(runs):
    lines = SIMULATION.report(runs, TARGET)
    text = "\n".join(lines)
    for name in SIMULATION.QUICK:
        assert f"| {name} | 2^12 |" in text
    assert "One run beyond: laplace on 2^14 cells" in text
    assert "| 24 GiB |" in text, "96 bytes per cell were declared for laplace"
    assert "size of the file" in text
    for one in runs["releases"]:
        assert one["seconds"] > 0
        assert one["needed"] >= one["cell_bytes"] * one["cells"]


@pytest.mark.long
def test_a_page_is_renewed_between_its_marks(runs, tmp_path, monkeypatch, capsys):
    page, kept = tmp_path / "page.md", tmp_path / "runs.json"
    page.write_text(
        "before\n<!-- scale: begin -->\nearlier\n<!-- scale: end -->\nafter\n"
    )
    kept.write_text(json.dumps(runs))
    told = ["scale_simulation.py", "--json", str(kept), "--write", str(page)]
    monkeypatch.setattr(sys, "argv", told)
    SIMULATION.main()
    text = page.read_text()
    assert text.startswith("before\n<!-- scale: begin -->\n\n| ")
    assert text.endswith("<!-- scale: end -->\nafter\n")
    assert "earlier" not in text
    assert capsys.readouterr().out.strip() in text


@pytest.mark.long
def test_counting_on_duckdb_runs(runs):
    pytest.importorskip("ibis")
    pytest.importorskip("duckdb")
    found = runs["counting"]
    assert {one["cells"] for one in found} == {2**8, 2**10, 2**12}
    assert all(0 < one["filled"] <= one["cells"] for one in found)
    SIMULATION.counting_at(found, 1e10, 2.0**28)


@pytest.mark.engines
@pytest.mark.filterwarnings("ignore")
def test_counting_on_spark_runs():
    for one in ("ibis", "pyspark"):
        if os.environ.get("BLOWFISH_NOTHING_SKIPPED"):
            importlib.import_module(one)
        pytest.importorskip(one)
    found = SIMULATION.spark(True)
    assert all(one["seconds"] > 0 and one["filled"] > 0 for one in found)
    SIMULATION.counting_check(found)


def test_the_page_holds_the_tables():
    page = (ROOT / "docs" / "performance.md").read_text()
    block = page.partition("<!-- scale: begin -->")[2].partition("<!-- scale: end -->")
    for wanted in ("| DuckDB |", "| laplace |", "| dawa |", "| saving a release |"):
        assert wanted in block[0]
