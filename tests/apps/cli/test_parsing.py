"""Words of the command line become domains, policies and workloads."""

from __future__ import annotations

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.apps.cli.parsing.domain import parse_column, parse_domain
from blowfish_fast.apps.cli.parsing.policy import parse_policy
from blowfish_fast.apps.cli.parsing.workload import parse_workload
from blowfish_fast.errors import BlowfishError

LINE = bf.Domain(12)
GRID = bf.Domain((4, 6))


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("4096", bf.Domain(4096)),
        ("64x32", bf.Domain((64, 32))),
        ("age=0:101:1", bf.Domain.from_edges(range(102), name="age")),
        ("x=-1:0.5:0.1", bf.Domain.from_edges(np.arange(-10, 6) / 10, name="x")),
        ("age=edges:0,18,65,120", bf.Domain.from_edges([0, 18, 65, 120], name="age")),
        ("sex=categories:f,m", bf.Domain.from_levels(["f", "m"], name="sex")),
        ("sex=categories f, m", bf.Domain.from_levels(["f", "m"], name="sex")),
        ("floor=categories:-1,0,1", bf.Domain.from_levels([-1, 0, 1], name="floor")),
        ("zip=categories:01,10", bf.Domain.from_levels(["01", "10"], name="zip")),
        ("floor=12", bf.Domain(12, names=["floor"])),
        (
            "d=2024-01-01:2024-04-01:month",
            bf.Domain.from_dates(
                ["2024-01-01", "2024-02-01", "2024-03-01", "2024-04-01"], name="d"
            ),
        ),
        (
            "d=2024-01-31:2024-03-15:month",
            bf.Domain.from_dates(["2024-01-31", "2024-02-29", "2024-03-15"], name="d"),
        ),
        (
            "d=2024-01-01:2024-01-20:2weeks",
            bf.Domain.from_dates(["2024-01-01", "2024-01-15", "2024-01-20"], name="d"),
        ),
        (
            "d=edges:2020-01-01,2024-01-01",
            bf.Domain.from_dates(["2020-01-01", "2024-01-01"], name="d"),
        ),
    ],
)
def test_a_domain_is_what_its_words_say(words, meant):
    assert parse_domain(words) == meant


def test_years_and_quarters_end_with_the_last_day():
    assert parse_column("d=2020-01-01:2024-01-01:year").size == 4
    assert parse_column("d=2020-01-01:2022-01-01:quarter").size == 8
    assert parse_column("d=2024-02-27:2024-03-02:day").size == 4


def test_time_may_go_to_its_last_day():
    last = parse_domain("d=9999-01-01:9999-12-31:month")
    assert last.size == 12


def test_advice_is_another_word_than_the_one_received():
    with pytest.raises(BlowfishError) as caught:
        parse_policy("threshold", bf.Domain(9))
    assert "did you mean" not in str(caught.value)
    with pytest.raises(BlowfishError, match="did you mean 'line'"):
        parse_policy("LINE", bf.Domain(9))


def test_columns_are_listed_or_joined_by_an_x():
    apart = parse_domain(["age=0:100:10", "sex=categories:f,x,m"])
    assert apart == parse_domain("age=0:100:10 x sex=categories:f,x,m")
    assert apart.shape == (10, 3)
    assert apart.names == ("age", "sex")


def test_lists_may_come_from_files(tmp_path):
    file = tmp_path / "towns.txt"
    file.write_text("Bern\nLa Chaux, de\n\n")
    domain = parse_domain(f"town=categories:@{file}")
    assert domain.attributes[0].levels == ("Bern", "La Chaux, de")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("many", "4096 or 64x64"),
        ("", "at least one column"),
        ("age=", "a column of the domain is"),
        ("=4", "a column of the domain is"),
        ("age=1:2", "LOW:HIGH:WIDTH"),
        ("age=0:10:3", "whole cells of width 3"),
        ("age=10:0:1", "whole cells"),
        ("age=0:10:0", "whole cells"),
        ("age=0:1e12:1", "at most 2^28"),
        ("age=low:high:1", "three numbers"),
        ("age=0:1e999999999:1", "three numbers"),
        ("age=0:1:1e-999999999", "three numbers"),
        ("age=\u00b2", "LOW:HIGH:WIDTH"),
        ("age=" + "9" * 5000, "at most 2^62"),
        ("9" * 20, "at most 2^28"),
        ("0", "at least 1"),
        ("64x-1", "at least 1"),
        ("age=edges:a,b", "categories:A,B,C"),
        ("age=edges:1,,2", "commas between"),
        ("age=edges:3,1", "increase strictly"),
        ("sex=categories:f,f", "must differ"),
        ("d=2024-01-01:2025-01-01:moon", "day, week, month"),
        ("d=2025-01-01:2024-01-01:day", "must go forward"),
        ("sex=categories:@nowhere.txt", "nowhere.txt"),
        (["age=0:10:1", "age=0:10:1"], "names must differ"),
    ],
)
def test_domains_that_make_no_sense_are_refused(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BlowfishError, match=message.replace("^", r"\^")):
        parse_domain(words)


def test_policies_are_what_their_words_say():
    values = bf.Domain.from_edges(range(0, 101, 5), name="age")
    assert parse_policy("add_remove", GRID) == bf.policies.AddRemove(GRID)
    assert parse_policy("line", LINE) == bf.policies.Line(LINE)
    assert parse_policy("threshold:3", LINE) == bf.policies.Threshold(LINE, 3)
    for words in ("threshold:2:linf", "threshold:2:cells:linf"):
        meant = bf.policies.Threshold(GRID, 2, metric="linf")
        assert parse_policy(words, GRID) == meant
    by_value = bf.policies.Threshold(values, 10, unit="value")
    assert parse_policy("threshold:10:value", values) == by_value
    assert parse_policy("blocks:4", LINE).sizes.tolist() == [4, 4, 4]
    assert parse_policy("blocks:2x4", GRID).sizes.tolist() == [8, 4, 8, 4]
    product = parse_policy("product:line,blocks:3", GRID)
    assert [type(one).__name__ for one in product.factors] == ["Line", "Blocks"]


def test_policies_may_come_from_files(tmp_path):
    edges, labels = tmp_path / "edges.csv", tmp_path / "labels.npy"
    edges.write_text("from,to\n0,1\n1,2\n2,-1\n")
    np.save(labels, np.arange(12) % 3)
    graph = parse_policy(f"graph:{edges}", LINE)
    assert graph == bf.policies.Graph(LINE, [[0, 1], [1, 2], [2, -1]])
    assert parse_policy(f"blocks:{labels}", LINE).components().count == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("lin", "did you mean 'line'"),
        ("line:3", "the policy is one of"),
        ("threshold", "threshold:THETA"),
        ("threshold:x", "with a number"),
        ("threshold:nan", "with a number"),
        ("threshold:2:metres", "then :cells or :value"),
        ("threshold:2:l1:l2", "then :cells or :value"),
        ("threshold:0", "at least 1 cell"),
        ("blocks:0", "blocks:SIZE"),
        ("blocks:2x2x2", "one per column"),
        ("graph:friends", "graph:FILE"),
        ("graph:nowhere.csv", "nowhere.csv"),
        ("product:line", "one policy per column"),
        ("product:line,add_remove", "absent"),
    ],
)
def test_policies_that_make_no_sense_are_refused(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BlowfishError, match=message):
        parse_policy(words, GRID)


def test_workloads_are_what_their_words_say(tmp_path):
    queries = tmp_path / "asked.csv"
    queries.write_text("start,end\n0,3\n2,12\n")
    for words in (f"ranges:{queries}", str(queries)):
        asked = parse_workload(words, LINE)
        assert asked.starts.tolist() == [0, 2]
        assert asked.ends.tolist() == [3, 12]
    boxes = tmp_path / "boxes.npy"
    np.save(boxes, [[0, 1, 2, 6]])
    box = parse_workload(f"rectangles:{boxes}", GRID)
    assert box.starts.tolist() == [[0, 1]]
    assert box.ends.tolist() == [[2, 6]]
    assert parse_workload("ranges:7", LINE).queries == 7
    assert parse_workload("rectangles:5", GRID).queries == 5
    assert parse_workload("all_ranges", LINE).queries == 78
    assert parse_workload("total", GRID).queries == 1
    people = parse_domain(["age=0:100:10", "sex=categories:f,m"])
    assert parse_workload("marginals:sex", people).queries == 2
    assert parse_workload("marginals:1,0", people).queries == 20


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("identy", "did you mean 'identity'"),
        ("ranges:x", "ranges:NUMBER"),
        ("ranges:\u00b2", "ranges:NUMBER"),
        ("ranges:0", "1 to 10,000,000"),
        ("rectangles:" + "9" * 5000, "1 to 10,000,000"),
        ("marginals:agee", "did you mean 'age'"),
        ("marginals:7", "no column '7'"),
        ("nowhere.csv", "nowhere.csv"),
        ("bad.csv", "each line of bad.csv needs 4 numbers"),
        ("ragged.csv", "row 2 is '3'"),
    ],
)
def test_workloads_that_make_no_sense_are_refused(
    words, message, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.csv").write_text("1,2,3\n")
    (tmp_path / "ragged.csv").write_text("1,2\n3\n")
    people = parse_domain(["age=0:100:10", "sex=categories:f,m"])
    with pytest.raises(BlowfishError, match=message):
        parse_workload(words, people)


def test_extra_cells_are_joined_to_every_value():
    ages = parse_domain("age=0:5:1").with_extra_cells(missing=True, outside=True)
    line = parse_policy("line", ages)
    assert line.distance(0, [4, 5, 6]).tolist() == [2.0, 1.0, 1.0]
    assert line.joins(5, 6)
    assert parse_policy("full", ages) == bf.policies.Full(ages)
    plain = parse_domain("age=0:5:1")
    assert parse_policy("line", plain) == bf.policies.Line(plain)
    people = parse_domain(["age=0:5:1", "sex=categories:f,m"])
    both = people.with_extra_cells(missing=["age"])
    product = parse_policy("product:line,full", both)
    assert product.factors[0].domain.size == 6
    with pytest.raises(BlowfishError, match="product:POLICY,POLICY"):
        parse_policy("threshold:2", both)


def test_a_stretch_of_time_may_be_one_cell():
    assert parse_domain("d=2024-01-01:2024-02-01:month").size == 1
    assert parse_domain("d=2024-01-01:2024-01-10:month").size == 1
    with pytest.raises(BlowfishError, match="time must go forward"):
        parse_domain("d=2024-01-01:2024-01-01:month")
