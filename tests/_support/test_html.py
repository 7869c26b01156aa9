"""What notebooks show is escaped, small at any size, and never the true counts."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast._support.html import panel, sparkline, spent_bar, table, tiny_map
from blowfish_fast.audit.neighbours import policy_families
from blowfish_fast.errors import MissingExtraError

EVIL = "<script>alert('x')</script>"
AGES = bf.Domain.from_edges(range(0, 101, 10), name=f"age {EVIL}")
TOWNS = bf.Domain.from_levels([EVIL, "Bern", 'a"b'], name="town & country")
BOTH = bf.Domain.product(AGES, TOWNS)
SECRET = 987_654
ALLOWED = {
    *("div", "table", "tr", "td", "th", "b", "svg", "title"),
    *("path", "rect", "circle", "text"),
}


class Reader(HTMLParser):
    """Collects tags, checks that they close, and refuses scripts."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.words = [], [], []

    def handle_starttag(self, tag, attrs):
        assert tag in ALLOWED
        names = [name for name, _ in attrs]
        assert not any(name.startswith("on") or name == "href" for name in names)
        self.open.append(tag)
        self.seen.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def read(thing):
    html = thing if isinstance(thing, str) else thing._repr_html_()
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert reader.open == []
    assert "<script" not in html
    return reader


def laplace(domain, epsilon=0.5):
    return bf.Laplace(
        bf.policies.AddRemove(domain), bf.workloads.Identity(domain), epsilon=epsilon
    )


def ledger():
    opened = bf.Ledger(None, epsilon=2, policy=bf.policies.AddRemove(AGES))
    opened.allot(f"ana {EVIL}", 1)
    opened.release(
        laplace(AGES), [3] * 10, request=f"ages {EVIL}", rng=1, analyst=f"ana {EVIL}"
    )
    return opened


def shown_things():
    line = bf.Domain(16)
    policy, ranges = bf.policies.Line(line), bf.workloads.AllRanges(line)
    opened = ledger()
    return {
        "domain": BOTH,
        "wide": bf.WideDomain.product(*(bf.Domain(99) for _ in range(9))),
        "policy": bf.policies.Full(AGES),
        "workload": bf.workloads.Ranges(AGES, [0], [3]),
        "mechanism": laplace(BOTH),
        "release": laplace(AGES).release([3] * 10, rng=1),
        "map": laplace(BOTH).release([[3] * 3] * 10),
        "histogram": bf.Histogram(AGES, [SECRET] * 10),
        "ledger": opened,
        "session": bf.Session(opened, [SECRET] * 10),
        "comparison": bf.compare(policy, ranges, epsilon=1),
        "recommendation": bf.recommend(
            policy, ranges, epsilon=1, records=100, trials=1
        ),
    }


@pytest.fixture(scope="module")
def things():
    return shown_things()


def test_everything_is_escaped_and_well_formed(things):
    for thing in things.values():
        assert read(thing).words


def test_true_counts_are_never_shown(things):
    for name in ("histogram", "session"):
        words = " ".join(read(things[name]).words)
        assert "counts hidden" in words
        assert "987" not in words


def test_a_domain_lists_its_attributes(things):
    words = read(things["domain"]).words
    assert f"age {EVIL}" in words
    assert "town & country" in words
    assert "0 to 100, cut at 10, 20, 30, 40, 50, 60, ..." in words
    assert f'{EVIL}, Bern, a"b' in words
    days = bf.Domain.from_dates(["2024-01-01", "2024-02-01"]).with_extra_cells(
        missing=True
    )
    assert "2024-01-01 to 2024-02-01; (missing)" in read(days).words
    assert "numbers 0 to 1,048,575" in read(bf.Domain(2**20)).words
    many = bf.WideDomain.product(*(bf.Domain(2) for _ in range(20)))
    assert "and 8 more" in read(many).words


@pytest.mark.parametrize(
    "domain", [AGES, TOWNS, bf.Domain((3, 4)), bf.Domain(1)], ids=lambda one: one.size
)
def test_small_policies_are_drawn_with_all_their_edges(domain):
    for policy in policy_families(domain).values():
        reader = read(policy)
        assert reader.seen.count("circle") == domain.size
        assert reader.seen.count("path") == policy.edge_count
        assert ("absent" in reader.words) == policy.has_bottom
        sentence = policy.describe()
        assert f"{sentence[0].upper()}{sentence[1:]}." in reader.words


def test_large_policies_are_summarised():
    reader = read(bf.policies.Line(bf.Domain(2**20)))
    assert "circle" not in reader.seen
    assert "1,048,575" in reader.words


def test_a_workload_and_a_mechanism_say_what_they_do(things):
    assert "Half-open ranges [start, end) of cells." in read(things["workload"]).words
    words = " ".join(read(things["mechanism"]).words)
    assert "0.5, spent in full by one release" in words
    assert "whether any one person is in the data" in words
    assert "MiB" in words


def test_a_release_draws_its_estimate_and_marks_seeds(things):
    seeded = read(things["release"])
    assert "Seeded: an experiment that protects nobody." in seeded.words
    assert "path" in seeded.seen
    secure = read(things["map"])
    assert not any("Seeded" in one for one in secure.words)
    assert secure.seen.count("rect") == 10 * 3 + 1


def test_centres_without_an_estimate_are_shown_too():
    grid = bf.Domain((4, 4))
    mechanism, data = bf.KMeans.example(grid, bf.policies.AddRemove(grid), 1)
    shown = read(mechanism.release(data, rng=1))
    assert any("2 centers" in words for words in shown.words)
    assert any("the centre of its cell" in words for words in shown.words)


def test_a_ledger_shows_budget_charges_and_shares(things):
    words = read(things["ledger"]).words
    assert "Ledger: eps = 0.5 of 2 spent, 1.5 left; 1 charge" in words
    assert f"ages {EVIL}" in words
    assert f"ana {EVIL}" in words
    assert "25% spent" in words


def test_a_long_ledger_lists_its_last_charges():
    opened = bf.Ledger(None, epsilon=2, policy=bf.policies.AddRemove(AGES))
    for one in range(12):
        opened.release(laplace(AGES, 0.01), [3] * 10, request=f"r{one}", rng=one)
    words = read(opened).words
    assert "r11" in words
    assert "r3" not in words
    assert any("the last 8 listed" in one for one in words)


def test_comparisons_show_every_line(things):
    for name in ("comparison", "recommendation"):
        words = read(things[name]).words
        assert all(one.name in words for one in things[name])


@pytest.mark.parametrize("shape", [2**20, (1024, 1024)])
def test_a_million_cells_take_a_few_kilobytes(shape):
    domain = bf.Domain(shape)
    mechanism = laplace(domain)
    release = mechanism.release(np.zeros(domain.shape, dtype=np.int64), rng=1)
    for thing in (domain, mechanism.policy, mechanism.workload, mechanism, release):
        assert len(thing._repr_html_()) < 60_000


def test_drawings_hold_what_they_are_given():
    filled = spent_bar(1, 4)
    assert 'width="60.0"' in filled
    assert "25% spent" in filled
    assert 'width="240.0"' in spent_bar(9, 4)
    assert sparkline(np.array([5.0])).count("L") == 1
    assert sparkline(np.arange(1000.0)).count("L") == 96
    assert tiny_map(np.ones((100, 3))).count("<rect") == 16 * 3 + 1
    assert read(tiny_map(-np.ones((2, 2)))).seen.count("rect") == 5
    assert "NaN" not in sparkline(np.zeros(4)) + tiny_map(np.zeros((2, 2)))


def test_a_line_of_estimates_fills_its_height_around_zero():
    # 4 is the top and 34 the bottom; the grey line is at zero.
    for values, zero, first in (
        ([-10.0, 20.0, 5.0], 24.0, 34.0),
        ([10.0, 20.0, 5.0], 34.0, 19.0),
        ([-3.0, -6.0], 4.0, 19.0),
    ):
        drawn = sparkline(np.array(values))
        assert f'"M2 {zero:.1f}H238"' in drawn
        assert f'"M2 {first:.1f}L' in drawn
    assert "4.0H" in sparkline(np.array([-10.0, 20.0, 5.0]))


def test_tables_and_panels_escape_every_part():
    reader = read(
        panel(EVIL, [(EVIL, EVIL)], sentence=EVIL, warning=EVIL)
        + table([EVIL], [[EVIL]])
    )
    assert reader.words.count(EVIL) == 7


def test_plain_data_goes_to_json_and_back(things):
    for name in ("domain", "policy", "workload", "mechanism", "release", "ledger"):
        plain = things[name].to_dict()
        assert json.loads(json.dumps(plain)) == plain
    for name in ("comparison", "recommendation"):
        plain = things[name].to_dict()
        assert len(json.loads(json.dumps(plain))["rows"]) == len(things[name])


def test_workloads_write_down_their_queries():
    grid = bf.Domain((2, 3))
    boxes = bf.workloads.Rectangles(grid, [[0, 0]], [[1, 2]]).to_dict()
    assert boxes["starts"] == [[0.0, 0.0]]
    assert boxes["ends"] == [[1.0, 2.0]]
    sums = bf.workloads.Marginals(grid, [1])
    assert sums.labels.size == 6
    assert sums.to_dict() == {
        "kind": "Marginals",
        "domain": grid.to_dict(),
        "queries": 3,
        "axes": [1],
    }
    linear = bf.workloads.Linear(bf.Domain(3), [[0, 2, 0], [1, 0, 1]]).to_dict()
    assert linear["matrix"] == {
        "shape": [2, 3],
        "rows": [0, 1, 1],
        "columns": [1, 0, 2],
        "values": [2.0, 1.0, 1.0],
    }
    assert set(bf.workloads.AllRanges(bf.Domain(3)).to_dict()) == {
        "kind",
        "domain",
        "queries",
    }


def test_mechanisms_write_down_their_options():
    dawa = bf.Dawa(
        bf.policies.AddRemove(AGES), bf.workloads.AllRanges(AGES), epsilon=0.1
    )
    plain = dawa.to_dict()
    assert plain["mechanism"] == "dawa"
    assert plain["epsilon"] == "1/10"
    assert plain["options"]["strategy"] == "greedy"
    assert plain["options"]["partition"] == "dyadic_tree"
    assert bf.policies.from_dict(plain["policy"]) == dawa.policy


def test_a_ledger_writes_down_exact_prices():
    plain = ledger().to_dict()
    assert (plain["epsilon"], plain["spent"], plain["remaining"]) == ("2", "1/2", "3/2")
    assert plain["charges"][0]["epsilon"] == "1/2"
    assert plain["allotments"] == {f"ana {EVIL}": {"epsilon": "1", "spent": "1/2"}}
    assert plain["frozen"]


def test_charges_and_rows_become_data_frames(things):
    pytest.importorskip("pandas")
    frame = ledger().to_pandas()
    assert frame["epsilon"].tolist() == [0.5]
    assert frame["request"].tolist() == [f"ages {EVIL}"]
    assert frame["time"].dtype.kind == "M"
    assert len(things["comparison"].to_pandas()) == len(things["comparison"])
    assert len(things["recommendation"].to_pandas()) == len(things["recommendation"])


def test_data_frames_ask_for_their_extra(things, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match="frames"):
        things["comparison"].to_pandas()


@pytest.mark.parametrize(
    "policy",
    [
        bf.policies.Full(bf.Domain(5)),
        bf.policies.AddRemove(bf.Domain(4)),
        bf.policies.Attribute(bf.Domain((3, 2))),
        bf.policies.Graph(bf.Domain(6), [(0, 3), (3, 5), (-1, 2)]),
    ],
    ids=repr,
)
def test_every_cell_of_a_small_policy_is_drawn_inside_its_picture(policy):
    html = policy._repr_html_()
    width, height = map(float, re.search(r'viewBox="0 0 (\S+) (\S+)"', html).groups())
    places = re.findall(r'<circle cx="(\S+)" cy="(\S+)"', html)
    assert len(set(places)) == policy.domain.size
    for across, down in places:
        assert 0 < float(across) < width
        assert 0 < float(down) < height
