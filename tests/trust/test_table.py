"""The table of what was measured, its file and its tool."""

from __future__ import annotations

import pytest

import blowfish_fast as bf
from blowfish_fast.audit import QUICK, Report
from blowfish_fast.audit.plan import AuditTask
from blowfish_fast.audit.report import note_figures, read_figures
from blowfish_fast.audit.verdicts import Verdict
from blowfish_fast.audit.walk import ProgressFile, audit_everything

from .table import (
    BEGIN,
    END,
    FIGURES,
    FIRST,
    PAGE,
    README,
    ROWS,
    figures_table,
    main,
    short_table,
    with_table,
)

GOOD = {"goal": "none", "measured": "0", "passed": True}
BAD = {"goal": "none", "measured": "3", "passed": False}


def test_page_and_readme_show_the_figures_that_were_measured():
    figures = read_figures(FIGURES)
    page, readme = PAGE.read_text(), README.read_text()
    assert with_table(page, figures_table(figures)) == page
    assert with_table(readme, short_table(figures)) == readme
    assert set(FIRST) <= figures.keys()


def test_every_promise_has_its_figure():
    found = read_figures(FIGURES)
    mine = {"audit", "power", "mutants", "grey_box", "coverage", "kills"}
    assert mine | {"concurrency", "inputs", "start_up"} <= found.keys()
    for key, entry in found.items():
        # A rate of the disk is reported as it is; everything else must hold.
        assert entry["passed"] is True or key == "concurrency", key
        assert entry["goal"]
        assert entry["measured"]
    assert found["audit"]["form"] in found["audit"]["measured"]


def test_rows_come_in_a_fixed_order_and_unknown_keys_last():
    lines = figures_table({"later": GOOD, "fuzz": BAD, "audit": GOOD}).splitlines()
    assert [line.split(" | ")[0] for line in lines[2:]] == [
        "| audit",
        "| fuzzing",
        "| later",
    ]
    assert lines[3].endswith("| NOT PASSED |")
    assert len(set(ROWS.values())) == len(ROWS)


def test_keys_are_added_and_others_left_alone(tmp_path):
    path = tmp_path / "figures.json"
    note_figures(path, {"fuzz": GOOD})
    note_figures(path, {"audit": BAD})
    assert read_figures(path) == {"fuzz": GOOD, "audit": BAD}
    with pytest.raises(bf.BlowfishError, match="lacks"):
        note_figures(path, {"kills": {"goal": "none"}})
    assert "kills" not in read_figures(path)
    path.write_text("{")
    with pytest.raises(bf.BlowfishError, match="holds no figures"):
        read_figures(path)


def test_the_tool_prints_writes_and_judges(tmp_path, capsys):
    figures, document = tmp_path / "figures.json", tmp_path / "page.md"
    note_figures(figures, {"fuzz": GOOD})
    document.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    options = ["--figures", str(figures)]
    assert main(options) == 0
    assert "| fuzzing | none | 0 | passed |" in capsys.readouterr().out
    assert main([*options, "--write", str(document)]) == 0
    assert "old" not in document.read_text()
    assert document.read_text().startswith("before")
    assert document.read_text().endswith("after\n")
    note_figures(figures, {"fuzz": BAD})
    assert main(options) == 1
    with pytest.raises(bf.BlowfishError, match="no marks"):
        with_table("nothing", "")


STOP = AuditTask("mechanism", "laplace", (2, 2), "full")
OTHER = STOP._replace(family="line")
FOUND = Verdict("prices", "laplace", "full", "d", 1.0, 1.0, 0, 3, True, "")


def test_an_audit_that_was_broken_off_goes_on(tmp_path):
    tiny = QUICK._replace(priced=(2,), sampled=(), families=(), pairs=2)
    kept = ProgressFile(tmp_path, tiny, "1")
    kept.add(STOP, [FOUND])
    # The process died while it wrote the next line.
    with kept.path.open("a") as file:
        file.write('{"task": ["mecha')
    again = ProgressFile(tmp_path, tiny, "1")
    assert again.found == {STOP: [FOUND]}
    again.add(OTHER, [FOUND])
    assert ProgressFile(tmp_path, tiny, "1").found == {STOP: [FOUND], OTHER: [FOUND]}
    assert ProgressFile(tmp_path, tiny, "2").found == {}


def test_what_was_found_is_not_looked_for_again(tmp_path):
    tiny = QUICK._replace(priced=(2,), sampled=(), families=(), pairs=2)
    first, seen = ProgressFile(tmp_path, tiny, "1"), []

    def progress(done, total, name):
        seen.append((done, total, name))

    settings = {"mechanisms": ["laplace"], "progress": progress}
    verdicts = audit_everything(tiny, progress_file=first, **settings)
    stops = len(seen)
    assert seen[-1][:2] == (stops, stops)
    second = ProgressFile(tmp_path, tiny, "1")
    assert audit_everything(tiny, progress_file=second, **settings) == verdicts
    assert len(seen) == stops
    assert second.seconds == pytest.approx(first.seconds, abs=0.01)
    assert first.seconds > 0


def test_a_report_gives_its_figures():
    verdicts = (
        FOUND,
        Verdict("sensitivity", "laplace", "full", "d", 1.0, 1.0, 0, 1200, True, ""),
        Verdict("noise", "laplace", "full", "d", 1.0, 0.9, 5000, 4, True, ""),
        Verdict("power", "laplace", "full", "d", 0.9, 1.0, 5000, 10, True, ""),
    )
    figures = Report(verdicts, QUICK, "quick", 60.0, "0").figures()
    assert figures.keys() == {"audit", "grey_box", "power"}
    assert "1e+04 samples" in figures["audit"]["measured"]
    assert "1,200 neighbours per mechanism" in figures["grey_box"]["measured"]
    assert all(entry["passed"] for entry in figures.values())
    broken = (*verdicts, verdicts[3]._replace(found=0.5, passed=False))
    figures = Report(broken, QUICK, "quick", 60.0, "0").figures()
    assert not figures["power"]["passed"]
