"""Wide domains on the command line: heavy cells, ranges, and what is refused."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.apps.cli.files.data_source import open_source
from blowfish_fast.apps.cli.files.outputs import read_release
from blowfish_fast.apps.cli.parsing.domain import parse_table
from blowfish_fast.apps.cli.parsing.policy import parse_table_policy
from blowfish_fast.data.histogram import Counting
from blowfish_fast.errors import InputError

from .asking import refused, run, told

ADDRESS = "address=0:4294967296:1"
HEAVY = 3232235777
NANOSECONDS = "time=2000-01-01:2036-01-01:1ns"


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """Return a log: 600 lines of one address, and 200 of others."""
    path = tmp_path_factory.mktemp("log") / "log.csv"
    with path.open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["address", "time", "ns"])
        for at in range(800):
            moment = f"2024-03-01T{at // 60:02}:{at % 60:02}:00.{at:09}"
            whole = np.datetime64(moment, "ns").astype(np.int64)
            lines.writerow([HEAVY if at < 600 else at, moment, int(whole)])
    return path


@pytest.fixture(scope="module")
def ranges(log):
    """Return the file of a release of ranges to the nanosecond."""
    out = str(log.with_name("ns.blowfish"))
    words = ["--domain", NANOSECONDS, "--policy", "add_remove", "--epsilon", "1"]
    words += ["--workload", "ranges:50", "--seed", "1", "--out", out]
    table = str(log.with_name("ns.csv"))
    report = told("release", "--data", str(log), *words, "--table", table)
    assert report["mechanism"] == "dawa"
    assert "true answers" in report["intervals"]
    return out


@pytest.mark.parametrize(
    ("words", "cells", "kind"),
    [
        ("a=0:4294967296:1", 2**32, bf.WideDomain),
        ("a=4294967296", 2**32, bf.WideDomain),
        ("a=-10:4294967286:2", 2**31, bf.WideDomain),
        (NANOSECONDS, 13149 * 86400 * 10**9, bf.WideDomain),
        ("t=2024-01-01T08:00..2024-01-01T09:00:1us", 3600 * 10**6, bf.WideDomain),
        ("t=2024-01-01:2024-01-02:1min", 1440, bf.Domain),
        ("t=2024-01-01..2024-01-02:6 hours", 4, bf.Domain),
        ("t=categories:08:00,09:00,1..2:1s", 3, bf.Domain),
        ('t=categories:"0:4294967296:1",2000-01-01:2036-01-01:1ns', 2, bf.Domain),
    ],
)
def test_words_of_rules_disturb_no_categories(words, cells, kind):
    domain = parse_table(words)
    assert (domain.size, type(domain)) == (cells, kind)


def test_rules_stand_beside_other_columns():
    table = parse_table([f"{ADDRESS} x sex=categories:f,m", NANOSECONDS])
    assert table.names == ("address", "sex", "time")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("a=0:4294967296:0.5", "whole numbers"),
        ("a=0:1e40:1", "2\\^62"),
        ("t=2024-01-01:2024-01-01:1s", "whole number of steps"),
        ("t=2024-01-01:2400-01-01:1ns", "2\\^62 cells"),
        ("t=2024-01-01T00:2024-01-02:1s:1", "the cells of 't' are"),
        ("t=1..5", "the cells of 't' are"),
        ("age=0:90:10, sex=categories:F,M", "Each column is stated by itself"),
        ("age=0:90:10 income=0:9:1", "Each column is stated by itself"),
    ],
)
def test_rules_that_cannot_be_read_are_refused(words, why):
    with pytest.raises(InputError, match=why):
        parse_table(words)


def test_heavy_cells_are_listed_answered_and_explained(log, tmp_path):
    out, table = str(tmp_path / "heavy.blowfish"), tmp_path / "heavy.csv"
    words = ["--data", str(log), "--domain", ADDRESS, "--policy", "full"]
    words += ["--workload", "identity", "--epsilon", "1", "--false-cells", "0.001"]
    dry = run("release", *words, "--dry-run")
    heavy = bf.policies.Full(parse_table(ADDRESS))
    least = bf.SparseLaplace(heavy, epsilon=1, false_cells="0.001").threshold
    assert f"lists cells of about {least} records and more" in dry
    words += ["--seed", "1", "--out", out, "--table", str(table)]
    picture = str(tmp_path / "heavy.svg")
    run("release", *words, "--picture", picture, "--report", str(tmp_path / "h.html"))
    (line,) = csv.DictReader(table.read_text("utf-8").splitlines())
    assert int(line["address"]) == HEAVY
    assert int(line["low"]) <= 600 <= int(line["high"])
    assert str(HEAVY) in run("answer", out)
    (cell,) = told("answer", out, "--where", "address=7")["answers"]
    assert (cell["listed"], cell["low"]) == (False, 0)
    assert f"reach {least} are listed" in run("explain", out)
    assert "misses nearly all" in str(refused("answer", out, "--where", "address=0:9"))
    assert "lists heavy cells" in str(refused("answer", out, "--range", "0:9"))
    assert "lists heavy cells" in str(refused("answer", out, "--by", "address"))


def test_cells_of_two_columns_are_listed_in_rho(log, tmp_path):
    out = str(tmp_path / "both.blowfish")
    words = ["--data", str(log), "--domain", ADDRESS, "--rho", "0.1"]
    words += ["--domain", "time=2024-03-01:2024-03-02:1s", "--policy", "add_remove"]
    words += ["--workload", "identity", "--seed", "1", "--out", out]
    assert told("release", *words)["mechanism"] == "sparse_gaussian"
    cell = ["--where", f"address={HEAVY}", "--where", "time=2024-03-01T00:01"]
    (found,) = told("answer", out, *cell)["answers"]
    assert found["low"] <= 1 <= found["high"]
    assert "one value of each column" in str(refused("answer", out, *cell[:2]))


@pytest.mark.long
def test_maps_are_released_answered_and_drawn(tmp_path):
    data, out = tmp_path / "places.csv", str(tmp_path / "map.blowfish")
    lines = [f"{2_600_000 + at % 700},{1_200_000 + at % 900}" for at in range(3000)]
    data.write_text("\n".join(["east,north", *lines]))
    sides = ["--domain", "east=2000000:1075741824:1"]
    sides += ["--domain", "north=1000000:1074741824:1"]
    asked = tmp_path / "boxes.csv"
    asked.write_text("2600000,1200000,2600350,1200450\n2000000,1000000,2600000,1200000")
    words = [*sides, "--policy", "add_remove", "--epsilon", "1", "--seed", "1"]
    words += ["--data", str(data), "--workload", f"rectangles:{asked}", "--out", out]
    picture = str(tmp_path / "map.svg")
    report = told("release", *words, "--picture", picture)
    assert report["mechanism"] == "dawa"
    boxes = told("answer", out, "--workload", f"rectangles:{asked}")["answers"]
    assert boxes[1]["low"] <= 0 <= boxes[1]["high"]
    where = ["--where", "east=2600000..2600350", "--where", "north=1200000..1200450"]
    (inside,) = told("answer", out, *where)["answers"]
    true = sum(at % 700 < 350 and at % 900 < 450 for at in range(3000))
    assert inside["low"] <= true <= inside["high"]
    assert inside["east and north"] == f"{where[1]} and {where[3]}"
    assert "map of two columns" in str(refused("answer", out, "--range", "0:9"))
    twice = refused("answer", out, *where, *where[:2])
    assert "once" in str(twice)
    assert "buckets" in run("explain", out)
    domain = parse_table(["a=0:1073741824:1", "b=0:1073741824:1"])
    assert bf_workload("rectangles:7", domain).queries == 7
    asked.write_text("1,2\n")
    with pytest.raises(InputError, match="two values of a and of b"):
        bf_workload(str(asked), domain)
    with pytest.raises(InputError, match="rectangles:NUMBER or rectangles:FILE"):
        bf_workload("ranges:7", domain)


def test_ranges_are_answered_in_values(ranges, tmp_path):
    (day,) = told("answer", ranges, "--where", "time=2024-03-01")["answers"]
    assert day["low"] <= 800 <= day["high"]
    two = "time=2024-03-01T00:00..2024-03-01T05:00,2024-03-01T10:00..2024-03-02T00:00"
    (parts,) = told("answer", ranges, "--where", two)["answers"]
    assert parts["low"] <= 500 <= parts["high"]
    asked = tmp_path / "asked.csv"
    asked.write_text("from,to\n2024-03-01,2024-03-02\n2030-01-01,2031-01-01\n")
    answers = told("answer", ranges, "--ranges", str(asked))["answers"]
    assert [one["low"] <= true <= one["high"] for one, true in zip(
        answers, (800, 0), strict=True
    )] == [True, True]  # fmt: skip
    some = told("answer", ranges, "--range", "2024-03", "--range", "2025:2026")
    assert len(some["answers"]) == 2
    assert told("answer", ranges)["answers"][0]["count"] == pytest.approx(800, abs=60)
    assert len(told("answer", ranges, "--workload", "ranges:5")["answers"]) == 5
    assert "buckets" in run("explain", ranges)
    for words, why in [
        (["--mean", "time"], "answers counts"),
        (
            ["--where", "time=2024-03-01", "--where", "time=2024-03-02"],
            "state each column",
        ),
        (["--workload", "prefixes"], "heavy ones are listed"),
    ]:
        assert why in str(refused("answer", ranges, *words))
    drawn = tmp_path / "ns.png"
    run("draw", ranges, "--out", str(drawn))
    assert drawn.stat().st_size > 1000


def test_a_job_file_states_a_rule_and_a_ledger_pays(log, tmp_path):
    asked = tmp_path / "asked.csv"
    asked.write_text("1709251200000000000,1709337600000000000\n")
    job = tmp_path / "job.toml"
    job.write_text(
        f'[data]\nsource = "{log}"\n[domain]\nns = "0:2000000000000000000:1"\n'
        '[policy]\nkind = "threshold"\ntheta = 1000\n'
        '[workload]\nkind = "ranges"\nfile = "asked.csv"\n'
        '[budget]\nepsilon = 0.5\nledger = "l.json"\ntotal = 1\n'
        '[output]\nrelease = "r.blowfish"\n'
    )
    assert run("release", str(job)).count("0.5 of 1 remains") == 1
    release = read_release(tmp_path / "r.blowfish")
    moment = np.datetime64("2024-03-01", "ns").astype(np.int64)
    low, high = release.where(ns=slice(int(moment), int(moment) + 10**14)).interval()
    assert low <= 800 <= high
    assert "job" in run("explain", str(job))


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--policy", "blocks:3"], "line and threshold:CELLS"),
        (["--policy", "full", "--mechanism", "laplace"], "released by sparse_laplace"),
        (["--policy", "full", "--certify", "0.1"], "without a certificate"),
        (["--policy", "full", "--workload", "prefixes"], "heavy ones are listed"),
        (["--policy", "line", "--outside", "cell"], "clamp such values"),
        (["--policy", "full", "--round"], "leave --round out"),
        (["--policy", "full", "--series", "time:day:2024-03-01"], "leave --series out"),
        (["--policy", "full", "--workload", "ranges:5", "--false-cells", "1"], "false"),
    ],
)
def test_what_a_wide_domain_does_not_take_is_refused_before_data_is_read(
    log, words, why
):
    stated = ["--data", str(log), "--domain", ADDRESS, "--epsilon", "1"]
    if "--workload" not in words:
        stated += ["--workload", "identity"]
    if "--series" in words:
        stated += ["--ledger", "none.json", "--budget", "2"]
    assert why in str(refused("release", *stated, *words))


def test_false_cells_are_those_of_lists(log):
    stated = ["--data", "demo", "--domain", "age=0:101:1", "--epsilon", "1"]
    stated += ["--policy", "full", "--workload", "identity", "--false-cells", "1"]
    assert "leave --false-cells out" in str(refused("release", *stated))


def test_policies_of_wide_ledgers_are_read():
    one = parse_table(ADDRESS)
    assert parse_table_policy("line", one) == bf.policies.Line(one)
    assert parse_table_policy("full+presence:2", one).absent_length == 2
    both = parse_table([ADDRESS, NANOSECONDS])
    assert parse_table_policy("full", both) == bf.policies.Full(both)


def counted(source, words, **options):
    counting = Counting.read(parse_table(words), **options)
    found = open_source(source)
    found.check(counting)
    made = found.histogram(counting, lambda _: None)
    return made.keys.tolist(), made.counts.tolist()


def test_files_of_all_kinds_count_the_same_to_the_nanosecond(log):
    arrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    rows = list(csv.DictReader(log.read_text("utf-8").splitlines()))
    moments = np.array([one["time"] for one in rows], dtype="M8[ns]")
    path = log.with_name("log.parquet")
    columns = {"address": [int(one["address"]) for one in rows], "time": moments}
    columns["ns"] = [int(one["ns"]) for one in rows]
    pyarrow.parquet.write_table(arrow.table(columns), path)
    for words in (NANOSECONDS, "ns=0:2000000000000000000:1", ADDRESS):
        assert counted(str(log), words) == counted(str(path), words)
    plain = bf.SparseHistogram.from_records(parse_table(NANOSECONDS), {"time": moments})
    assert counted(str(log), NANOSECONDS)[0] == plain.keys.tolist()


def test_whole_numbers_of_any_length_and_far_moments_lie_outside(tmp_path):
    path = tmp_path / "far.csv"
    path.write_text(f"n,t\n{'9' * 60},9999-12-31\n-{'9' * 25},0001-01-01\n7,NA\n")
    words, last = "n=0:2000000000000000000:1", 2 * 10**18 - 1
    assert counted(str(path), words, outside="clamp")[0] == [0, 7, last]
    moments = counted(
        str(path), NANOSECONDS.replace("time", "t"), outside="clamp", missing="cell"
    )
    cells = 13149 * 86400 * 10**9
    assert moments[0] == [0, cells - 1, cells]
    path.write_text("n\n7.5\n")
    with pytest.raises(InputError, match="must be a whole number"):
        counted(str(path), words)
    np.save(tmp_path / "counts.npy", np.zeros(4))
    with pytest.raises(InputError, match="holds a count of every cell"):
        counted(str(tmp_path / "counts.npy"), words)
    path.write_text("9,5\n7\n")
    with pytest.raises(InputError, match="needs two values"):
        bf_workload(f"ranges:{path}", parse_table("n=4294967296"))
    path.write_text("9.5,12\n")
    with pytest.raises(InputError, match="whole numbers"):
        bf_workload(f"ranges:{path}", parse_table("n=4294967296"))


def bf_workload(words, domain):
    from blowfish_fast.apps.cli.parsing.workload import parse_workload

    return parse_workload(words, domain)


def test_a_table_of_a_database_is_counted_by_a_rule(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("ibis")
    path = tmp_path / "log.duckdb"
    with duckdb.connect(str(path)) as database:
        database.execute(
            "CREATE TABLE log AS SELECT 3232235777 + i // 9 AS address, "
            "TIMESTAMP '2024-03-01 00:00:00.7' + INTERVAL (i) SECOND AS time "
            "FROM range(10) t(i)"
        )
    assert counted(str(path), ADDRESS) == ([HEAVY, HEAVY + 1], [9, 1])
    seconds = "time=2024-03-01T00:00:05..2034-02-28T00:00:05:1s"
    keys, counts = counted(str(path), seconds, outside="cell")
    assert (keys[:5], counts[:5]) == ([0, 1, 2, 3, 4], [1] * 5)
    assert counts[-1] == 5
    with pytest.raises(InputError, match="compared to the second"):
        counted(str(path), NANOSECONDS)
    with pytest.raises(InputError, match="stated as a whole number"):
        counted(str(path), "time=4294967296")


def test_frequent_words_of_a_text_column_are_listed_without_categories(tmp_path):
    path, out = tmp_path / "words.csv", str(tmp_path / "words.blowfish")
    lines = ["Weather"] * 300 + ["news"] * 90 + ["bus times"] * 40 + ["rare", ""]
    path.write_text("word,n\n" + "".join(f'"{one}",1\n' for one in lines))
    words = ["--data", str(path), "--domain", "word=letters:12", "--epsilon", "1"]
    words += ["--policy", "add_remove", "--workload", "identity", "--out", out]
    words += ["--false-cells", "1e-6", "--missing", "cell"]
    assert "none of its words" in str(refused("release", *words))
    words += ["--outside", "cell", "--seed", "2"]
    assert "by their length: 0:" in run("release", *words, "--dry-run")
    told("release", *words)
    answers = told("answer", out)["answers"]
    assert [one["word"] for one in answers] == ["news", "weather", ""]
    assert answers[-1]["word_cell"] == "(outside)"
    (rare,) = told("answer", out, "--where", "word=rare")["answers"]
    assert (rare["listed"], rare["low"]) == (False, 0)
    assert "grows with their length" in run("explain", out)
    parquet = pytest.importorskip("pyarrow.parquet")
    arrow = pytest.importorskip("pyarrow")
    file = tmp_path / "words.parquet"
    parquet.write_table(arrow.table({"word": lines, "n": [1] * len(lines)}), file)
    keys, counts = counted(str(file), "word=letters+digits:9", outside="cell")
    assert sorted(counts) == [1, 1, 40, 90, 300]
    assert len(keys) == 5
    # A blank is a character of a text, and no letter: "bus times" is a word here.
    any_text = parse_table("word=utf-8:40")
    spoken, numbers = counted(str(file), "word=utf-8:40")
    texts = [any_text.rule.word(int(key)) for key in spoken]
    assert dict(zip(texts, numbers, strict=True))["bus times"] == 40
    assert len(texts) == 5
    with pytest.raises(InputError, match="is of type BIGINT"):
        counted(str(file), "n=digits:9")
    with pytest.raises(InputError, match="heavy ones are listed, identity"):
        bf_workload("ranges:5", parse_table("word=letters:4"))


def test_words_of_a_database_are_counted_there(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("ibis")
    path = tmp_path / "log.duckdb"
    with duckdb.connect(str(path)) as database:
        rows = "VALUES ('a', 1), ('A', 2), ('news', 3), ('x y', 4)"
        database.execute(f"CREATE TABLE log AS SELECT * FROM ({rows}) AS t(word, n)")
    keys, counts = counted(str(path), "word=letters:9", outside="cell")
    assert (len(keys), counts) == (3, [2, 1, 1])
    with pytest.raises(InputError, match="stated as a word"):
        counted(str(path), "n=letters:9")
