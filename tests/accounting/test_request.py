"""One request: checks that come before the charge, one draw, bytes."""

from __future__ import annotations

import io
import tempfile
import zipfile
from fractions import Fraction

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast._support import machine
from blowfish_fast.accounting.composition import RHO
from blowfish_fast.accounting.request import (
    RequestPart,
    as_request,
    check_mechanism,
    check_policy,
    check_room,
    check_seed,
    describe_parts,
    draw_parts,
    is_public,
    people_of,
    price_in,
    read_release,
    refusal,
)
from blowfish_fast.audit import policy_families
from blowfish_fast.audit.neighbours import Pair, all_edges
from blowfish_fast.errors import (
    BlowfishError,
    InputError,
    PolicyError,
    PrivacyError,
    RandomnessError,
    SizeError,
)
from blowfish_fast.measure.linear_strategy import PreparedStrategy
from blowfish_fast.measure.strategies.trees.tree_weights import level_tree
from blowfish_fast.mechanisms.registry import MECHANISMS

LINE = bf.Domain(6)
CELLS = bf.workloads.Identity(LINE)
FULL = bf.policies.Full(LINE)
MOSTLY_PUBLIC = bf.policies.Blocks(LINE, [0, 1, 2, 3, 4, 4])
COUNTS = [3, 1, 4, 1, 5, 9]
NO_EDGES = bf.policies.Graph(LINE, np.empty((0, 2), dtype=np.int64))


def laplace(policy=FULL, epsilon=0.1):
    asked = bf.workloads.Identity(policy.domain)
    return bf.Laplace(policy, asked, epsilon=epsilon)


FAMILIES = {
    **policy_families(LINE),
    "no edges": NO_EDGES,
    "mostly public": MOSTLY_PUBLIC,
}


def neighbours(policy):
    """Yield counts along every edge of a small policy."""
    for edge in all_edges(policy):
        yield Pair((2, 0, 3, 1, 0, 5), edge).sides


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_only_what_no_neighbour_and_no_noise_changes_is_public(name, family):
    """Nothing is charged for it, so everything that is ever measured must be exact."""
    policy = FAMILIES[family]
    try:
        mechanism, data = MECHANISMS[name].example(LINE, policy, 2)
        part = RequestPart(mechanism, data)
        public = is_public(part)
        first, again = (mechanism.release(data, rng=seed) for seed in (1, 2))
    except BlowfishError:
        return
    if not public:
        return
    assert (first.estimate == again.estimate).all()
    for sides in neighbours(policy):
        one, other = (mechanism.release(side, rng=1).estimate for side in sides)
        np.testing.assert_allclose(one, other, atol=1e-6)


def test_what_is_public_is_found_out():
    total, adding = bf.workloads.Total(LINE), bf.policies.AddRemove(LINE)
    assert is_public(RequestPart(laplace(NO_EDGES), COUNTS))
    assert not is_public(RequestPart(laplace(FULL), COUNTS))
    assert not is_public(RequestPart(bf.Ordered(adding, total, epsilon=1), COUNTS))
    # Four cells of their own are public, and the last two are not.
    assert not is_public(RequestPart(laplace(MOSTLY_PUBLIC), COUNTS))


def test_more_edges_and_projections_are_accepted():
    line = bf.policies.Line(LINE)
    assert refusal(laplace(line), line) == ""
    assert refusal(laplace(FULL), line) == ""
    assert refusal(laplace(bf.policies.Threshold(LINE, theta=2)), line) == ""
    assert refusal(laplace(line.project([0, 0, 1, 1, 2, 2])), line) == ""
    assert refusal(laplace(FULL.project([0, 0, 1, 1, 2, 2])), line) == ""


@pytest.mark.parametrize(
    "policy",
    [
        bf.policies.Line(LINE),
        bf.policies.AddRemove(LINE),
        bf.policies.Line(LINE).project([0, 0, 1, 1, 2, 2]),
        bf.policies.Full(bf.Domain(3)),
    ],
)
def test_fewer_edges_are_refused_by_name(policy):
    with pytest.raises(PolicyError, match="the ledger promises Full"):
        check_policy(laplace(policy), FULL)


def test_constraints_of_the_ledger_are_never_ignored():
    known = bf.policies.CountConstraints(LINE, [[1, 1, 0, 0, 0, 0]])
    promised = FULL.with_constraints(known)
    assert refusal(laplace(promised), promised) == ""
    assert refusal(laplace(promised.project([0, 0, 1, 1, 2, 2])), promised) == ""
    assert refusal(laplace(FULL), promised) != ""
    assert refusal(laplace(FULL.project([0, 0, 1, 1, 2, 2])), promised) != ""


def test_what_is_no_mechanism_is_refused():
    with pytest.raises(InputError, match="releases mechanisms"):
        check_mechanism(FULL)


@pytest.mark.parametrize("name", ["", "x" * 201, 7, b"a", "a\x1b[2J", "a\nb"])
def test_bad_names_are_refused(name):
    with pytest.raises(InputError, match="1 to 200 printable characters"):
        as_request(name)


def test_names_are_made_up_where_none_is_given():
    assert as_request("mine") == "mine"
    assert as_request(None) != as_request(None)


def test_seeds_are_for_memory_only():
    check_seed(None, on_disk=True)
    check_seed(3, on_disk=False)
    check_seed(np.random.default_rng(3), on_disk=False)
    with pytest.raises(RandomnessError, match="Nothing was charged"):
        check_seed(3, on_disk=True)
    with pytest.raises(BlowfishError):
        check_seed(-1, on_disk=False)
    with pytest.raises(BlowfishError):
        check_seed("seven", on_disk=False)


@pytest.mark.parametrize("mechanism", [bf.Dawa, bf.Laplace])
def test_too_little_memory_is_a_public_refusal(mechanism, monkeypatch):
    made = mechanism(FULL, bf.workloads.Ranges(LINE, [0], [3]), epsilon=1)
    check_room([RequestPart(made, None)])
    monkeypatch.setattr(machine, "memory_room", lambda: 2.0**20)
    with pytest.raises(SizeError, match="nothing was charged"):
        check_room([RequestPart(made, None)])


def test_parts_draw_different_noise_from_one_seed():
    parts = [RequestPart(laplace(), COUNTS), RequestPart(laplace(), COUNTS)]
    one, other = draw_parts(parts, 7)
    assert (one.estimate != other.estimate).any()
    again = draw_parts(parts, 7)
    assert (one.estimate == again[0].estimate).all()
    assert (other.estimate == again[1].estimate).all()


def test_an_answer_that_spent_more_is_dropped(monkeypatch):
    dear = laplace(epsilon=0.9).release(COUNTS)
    monkeypatch.setattr(bf.Laplace, "_drawn", lambda *_a, **_k: dear)
    with pytest.raises(PrivacyError, match="was dropped"):
        draw_parts([RequestPart(laplace(epsilon=0.1), COUNTS)], None)


def test_an_answer_with_other_noise_is_dropped(monkeypatch):
    seeded = laplace().release(COUNTS, rng=1)
    monkeypatch.setattr(bf.Laplace, "_drawn", lambda *_a, **_k: seeded)
    with pytest.raises(PrivacyError, match="was dropped"):
        draw_parts([RequestPart(laplace(), COUNTS)], None)


def test_a_description_does_not_depend_on_data():
    one = describe_parts([RequestPart(laplace(), COUNTS)], None)
    other = describe_parts([RequestPart(laplace(), [0] * 6)], None)
    assert one == other
    assert one["parts"][0]["epsilon"] == "1/10"
    assert describe_parts([RequestPart(laplace(), COUNTS, [1])], None) != one
    assert describe_parts([RequestPart(laplace(), COUNTS)], "ids") != one


def test_a_description_follows_what_a_mechanism_holds():
    mechanism = laplace()
    part = RequestPart(mechanism, COUNTS)
    one = describe_parts([part], None)
    # What a request adds to it is not remembered.
    one["note"] = "mine"
    assert "note" not in describe_parts([part], None)
    twice = describe_parts([RequestPart(mechanism, COUNTS, [1])], None)
    assert twice["fingerprint"] != one["fingerprint"]
    mechanism.budget *= 2
    other = describe_parts([part], None)
    assert other["fingerprint"] != one["fingerprint"]
    assert other["parts"][0]["epsilon"] != one["parts"][0]["epsilon"]


@pytest.mark.parametrize("fit", [None, "non_negative"])
def test_bytes_are_those_of_a_release_file(tmp_path, fit):
    asked = bf.workloads.Ranges(LINE, [0], [3])
    release = bf.Dawa(FULL, asked, epsilon=1, fit=fit).release(COUNTS)
    release.save(tmp_path / "a.release")
    answer = release.to_bytes()
    with (
        zipfile.ZipFile(tmp_path / "a.release") as saved,
        zipfile.ZipFile(io.BytesIO(answer)) as kept,
    ):
        assert saved.namelist() == kept.namelist()
        for name in saved.namelist():
            assert saved.read(name) == kept.read(name)
    again = read_release(answer)
    assert (again.estimate == release.estimate).all()
    assert again.guarantee == release.guarantee
    bounds = [one.intervals(CELLS, of="noise") for one in (again, release)]
    assert (bounds[0] == bounds[1]).all()


def test_answers_touch_no_disk_but_the_ledgers_own(monkeypatch):
    def refuse(*_arguments, **_options):
        raise AssertionError("a file was made")

    release = laplace().release(COUNTS)
    for name in ("mkstemp", "mkdtemp", "TemporaryDirectory", "NamedTemporaryFile"):
        monkeypatch.setattr(tempfile, name, refuse)
    monkeypatch.setattr("builtins.open", refuse)
    answer = release.to_bytes()
    assert (read_release(answer).estimate == release.estimate).all()


def test_centres_of_clusters_are_stored_too():
    box = bf.Domain((16, 16))
    means = bf.KMeans(bf.policies.Full(box), epsilon=1, rounds=2)
    ledger = bf.Ledger(None, epsilon=2, policy=bf.policies.Full(box))
    points = np.random.default_rng(1).uniform(0, 16, (200, 2))
    first = ledger.release(means, points, request="centres")
    again = ledger.release(means, points, request="centres")
    assert (first.centers == again.centers).all()
    assert ledger.spent == 1
    assert (read_release(first.to_bytes()).centers == first.centers).all()


class Opaque:
    """A strategy of an outside author: everything but a linear one."""

    def __init__(self, inside):
        self.inside = inside

    def __getattr__(self, name):
        return getattr(self.inside, name)

    def prepare(self, policy, budget):
        return PreparedStrategy(self, self.scales(policy, budget), policy, budget)


def test_a_strategy_that_states_no_price_in_rho_pays_half_the_square(monkeypatch):
    domain = bf.Domain(512)
    policy = bf.policies.AddRemove(domain)
    ranges = bf.workloads.AllRanges(domain)
    levels = {"epsilon": "0.1", "fan_out": 2, "strategy": "uniform"}

    most = Fraction(1, 200)
    assert price_in(bf.Hierarchy(policy, ranges, **levels), RHO) < most / 9

    def foreign(*given, **terms):
        return Opaque(level_tree(*given, **terms))

    monkeypatch.setattr("blowfish_fast.mechanisms.hierarchy.level_tree", foreign)
    assert price_in(bf.Hierarchy(policy, ranges, **levels), RHO) == most


def test_one_request_is_about_one_kind_of_people():
    policy = bf.policies.AddRemove(LINE).per_person(3)
    parts = [
        RequestPart(laplace(policy), bf.Histogram(LINE, COUNTS, at_most=3, person=who))
        for who in ("patient", "doctor", None)
    ]
    assert people_of([parts[0], parts[2]], None) == "patient"
    with pytest.raises(PolicyError, match=r"received \['doctor', 'patient'\]"):
        people_of(parts, None)
