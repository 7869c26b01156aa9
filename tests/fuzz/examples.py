"""Valid values by type, and arguments made from them: as they are, or changed.

release file   bytes -> flipped, cut       or unpacked -> JSON and arrays changed -> zip
plain data     to_dict(), pack() of examples -> one or a few things changed
"""

from __future__ import annotations

import functools
import inspect
import io
import json
import os
import tempfile
import types
import typing
import warnings
import zipfile

import numpy as np

import blowfish_fast as bf
from blowfish_fast.data.persons import Bound
from blowfish_fast.mechanisms.registry import MECHANISMS

from .values import anything, array, mutated, mutated_array, mutated_bytes

EPSILON = 1


@functools.cache
def domains():
    return [
        bf.Domain(8),
        bf.Domain((3, 4)),
        bf.Domain.from_edges([0, 1, 2.5, 9], name="age"),
        bf.Domain.from_levels(["a", "b", "c"], name="kind"),
        bf.Domain(1),
    ]


@functools.cache
def policies():
    """Return every policy class that a domain and simple options can make."""
    line, grid = domains()[:2]
    made = [one(line) for one in (bf.policies.Full, bf.policies.Line)]
    made += [bf.policies.AddRemove(grid), bf.policies.Attribute(grid)]
    made += [bf.policies.Threshold(line, theta=2), bf.policies.Threshold(grid, theta=1)]
    made += [bf.policies.Blocks(line, [0, 0, 1, 1, 1, 2, 2, 2])]
    made += [bf.policies.Graph(line, [[0, 1], [1, 5], [6, 7]])]
    known = bf.policies.CountConstraints(line, np.eye(8, dtype=int)[:1])
    made += [made[0].with_constraints(known), made[0].project(np.arange(8) // 2)]
    return made


@functools.cache
def releases():
    """Return a release of every mechanism, small and seeded."""
    made = []
    for mechanism in MECHANISMS.values():
        for policy in policies()[:3]:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    built, data = mechanism.example(policy.domain, policy, EPSILON)
                    made.append(built.release(data, rng=1))
                except bf.BlowfishError:
                    continue
    for domain in domains()[1:4]:
        present = bf.policies.AddRemove(domain)
        built, data = bf.ChosenTables.example(domain, present, EPSILON)
        made.append(built.release(data, rng=1))
    for counting in contingencies():
        data = np.ones(counting.domain.shape, dtype=int)
        made.append(counting.release(bf.Histogram(counting.domain, data), rng=1))
    return [*made, *wide_releases()]


@functools.cache
def wide_releases():
    """Return a list of heavy cells in either currency, and ranges of a wide line."""
    line = bf.WideDomain(2**40, names="time")
    policy = bf.policies.AddRemove(line)
    data = bf.SparseHistogram.from_records(line, {"time": [5] * 90 + [2**39] * 60})
    asked = bf.workloads.Ranges(line, [0, 9], [2**20, 2**39 + 1])
    mechanisms = [
        bf.SparseLaplace(policy, epsilon=EPSILON),
        bf.SparseGaussian(policy, rho=EPSILON),
        bf.Dawa(policy, asked, epsilon=EPSILON),
    ]
    return [mechanism.release(data, rng=1) for mechanism in mechanisms]


@functools.cache
def contingencies():
    """Return mechanisms that say which tables are counted."""
    made = []
    for domain in domains()[1:4]:
        full = bf.policies.Full(domain)
        asked = bf.workloads.Tables(domain, ways=1)
        made.append(bf.Contingency(full, asked, epsilon=EPSILON))
    return made


@functools.cache
def histograms():
    return [
        bf.Histogram(domain, np.ones(domain.shape, dtype=int)) for domain in domains()
    ]


@functools.cache
def budgets():
    return [
        bf.budgets.Budget.stated(epsilon="0.1"),
        bf.budgets.Budget.stated(rho="1/3"),
        bf.budgets.Budget.stated(epsilon=1, delta="1e-9"),
    ]


@functools.cache
def questions():
    """Return a question of every kind that the explorer answers."""
    plain = {"table": "people", "cost": {"alpha": 20, "beta": 0.05}}
    one, two = {"attribute": "age"}, {"attributes": ["age", "kind"]}
    box = [[0, 9], [1, 2]]
    kinds = [
        {"kind": "histogram", **one, "width": 2},
        {"kind": "cumulative", **one, "cost": {"epsilon": 1, "delta": 1e-9}},
        {"kind": "quantiles", **one, "q": [0.5]},
        {"kind": "ranges", **one, "ranges": [[0, 9]]},
        {"kind": "histogram2d", **two, "granularity": [2, 1]},
        {"kind": "frequent", **one, "cost": {"epsilon": 0.5}},
        {"kind": "marginal", **two, "filters": [{"attribute": "x", "values": ["a"]}]},
        {"kind": "rectangles", **two, "rectangles": [box]},
    ]
    return [bf.explorer.read_question(plain | kind) for kind in kinds]


@functools.cache
def instances():
    """Return examples of everything that can be written down."""
    measured = [
        one.strategy
        for release in releases()
        for one in getattr(release, "measurements", ())
    ]
    first = policies()[0]
    grid = domains()[1]
    known = [
        bf.policies.CountConstraints(first.domain, np.eye(8, dtype=int)[:2]),
        bf.policies.MarginalConstraints(grid, (0,)),
        bf.policies.RectangleConstraints(grid, [[0, 0]], [[2, 2]]),
    ]
    guarantees = [release.guarantee for release in releases()[:3]]
    histogram = bf.Histogram(first.domain, np.arange(8))
    everything = [*domains(), *policies(), *releases(), *measured, *guarantees]
    attributes = [one for domain in domains() for one in domain.attributes]
    return [*everything, *known, histogram, *attributes, *budgets(), *questions()]


def written(value):
    """Return plain data of an example, if it has any."""
    for name in ("to_dict", "pack", "model_dump"):
        if hasattr(value, name):
            try:
                return getattr(value, name)()
            except (bf.BlowfishError, NotImplementedError):
                return None
    return None


@functools.cache
def plain_data(owner):
    """Return plain data of all examples of a class; of every class if it has none."""
    own = [one for one in instances() if owner is not None and isinstance(one, owner)]
    found = [written(one) for one in own or instances()]
    return [one for one in found if isinstance(one, dict)] or [{}]


@functools.cache
def saved_series():
    """Return a series of two weeks, as `Series.save` writes it."""
    policy = bf.policies.AddRemove(domains()[0])
    weeks = bf.Series(
        bf.Ledger(None, policy=policy, rho=3),
        column="received",
        every="week",
        totals=True,
        frozen=True,
    )
    mechanism = bf.Gaussian(policy, rho=1)
    counts = [np.arange(8), np.arange(8) * 2]
    for number in (1, 2):
        weeks.release(f"2026-W0{number}", mechanism, counts[:number], rng=number)
    with tempfile.TemporaryDirectory() as folder:
        place = os.path.join(folder, "weeks.blowfish")
        weeks.save(place)
        return bf.series.SavedSeries.load(place)


@functools.cache
def files(owner):
    """Return the bytes of all examples of a class that has any."""
    if owner is bf.series.SavedSeries:
        return [saved_series().to_bytes()]
    own = [one for one in releases() if owner is None or type(one) is owner]
    return [one.to_bytes() for one in own or releases()]


def changed_file(rng, content):
    """Change a release file: its bytes, its plain data, or its arrays."""
    if not content.startswith(b"PK"):
        if rng.random() < 0.4:
            return mutated_bytes(rng, content)
        return dumped(mutated(rng, json.loads(content)))
    if rng.random() < 0.3:
        return mutated_bytes(rng, content)
    head, plain, arrays = opened(content)
    arrays = dict(arrays)
    members = []
    kind = rng.randrange(10)
    if kind < 5:
        plain = mutated(rng, plain)
    elif kind < 9 and arrays:
        name = rng.choice(sorted(arrays))
        arrays[name] = rng.choice((mutated_array, mutated))(rng, arrays[name])
    else:
        members.append((rng.choice(("../up.npy", "/abs", "array0.npy", "x/")), b"x"))
    members = [(head, dumped(plain)), *members]
    for name, one in arrays.items():
        if not isinstance(one, np.ndarray):
            one = np.array([repr(one)], dtype=object)
        member = io.BytesIO()
        try:
            np.save(member, one, allow_pickle=True)
        except (TypeError, AttributeError):
            member.write(b"not an array")
        members.append((name, member.getvalue()))
    if rng.random() < 0.1:
        del members[rng.randrange(len(members))]
    return zipped(members)


@functools.lru_cache(maxsize=256)
def opened(content):
    """Return the name of the plain data of a release file, they, and the arrays."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        (head,) = (name for name in archive.namelist() if name.endswith(".json"))
        plain = json.loads(archive.read(head))
        arrays = {
            name: np.load(io.BytesIO(archive.read(name)))
            for name in archive.namelist()
            if name.endswith(".npy")
        }
    return head, plain, arrays


def zipped(members):
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for name, content in members:
                archive.writestr(name, content)
    return file.getvalue()


def dumped(plain):
    """Write plain data as JSON; what JSON does not know becomes a text."""
    try:
        return json.dumps(plain, default=repr).encode()
    except (TypeError, ValueError):
        return b"{}"


@functools.cache
def _place():
    return os.path.join(tempfile.mkdtemp(prefix="fuzz"), "file")


SQUARES = [
    {
        "type": "Polygon",
        "coordinates": [[[at, 0], [at + 1, 0], [at + 1, 1], [at, 1], [at, 0]]],
    }
    for at in range(2)
]
"""Two districts that share a border."""

OF_DISTRICTS = {
    "Districts.from_shapes": {"shapes": SQUARES, "ids": ["A", "B"]},
    "Districts.from_file": {"id": "code"},
    "Domain.from_h3": {"area": SQUARES[0], "resolution": 3},
    "workloads.Nesting.from_h3": {
        "ids": ["871f90c86ffffff", "871f90cb1ffffff"],
        "resolutions": [5, 7],
    },
    "workloads.Nesting.from_codes": {"ids": ["0101", "0102", "0201"], "digits": [2, 4]},
    "workloads.Nesting.from_columns": {
        "table": {"state": ["a", "a", "b"], "county": ["1", "2", "3"]},
        "names": ["state", "county"],
    },
}
"""Values that fit, for doors whose annotations say little."""


@functools.cache
def places():
    """Return districts, and one of their files."""
    features = [
        {"type": "Feature", "properties": {"code": code}, "geometry": shape}
        for code, shape in zip("AB", SQUARES, strict=True)
    ]
    whole = {"type": "FeatureCollection", "features": features}
    return bf.Districts.from_shapes(SQUARES, "AB"), json.dumps(whole).encode()


def own_door(door):
    """Return the door that hexagons inherit from districts, or the door itself."""
    return door.replace("Hexagons.", "Districts.")


def _of_districts(rng, door, parameter):
    """Return a value that fits a door of districts, often, or None."""
    if door == "Domain.from_polygons" and parameter.name == "districts":
        return places()[0] if rng.random() < 0.7 else None
    usual = OF_DISTRICTS.get(own_door(door), {}).get(parameter.name)
    if usual is None or rng.random() < 0.2:
        return None
    return usual if rng.random() < 0.7 else mutated(rng, usual)


def argument(rng, door, parameter):
    """Return an argument for a parameter of a door, by its annotation."""
    wanted = str(parameter.annotation)
    owner = _owner(door)
    if rng.random() < 0.03:
        return anything(rng)
    if (place := _of_districts(rng, door, parameter)) is not None:
        return place
    if own_door(door) == "Districts.from_file" and parameter.name == "path":
        content = places()[1]
        with open(f"{_place()}.geojson", "wb") as file:
            file.write(content if rng.random() < 0.3 else changed_file(rng, content))
        return f"{_place()}.geojson"
    if "PathLike" in wanted or parameter.name == "path":
        with open(_place(), "wb") as file:
            content = rng.choice(files(owner))
            same = rng.random() < 0.02
            file.write(content if same else changed_file(rng, content))
        return _place()
    if parameter.name == "table" and rng.random() < 0.9:
        return rng.choice(tables())
    if "bytes" in wanted:
        content = rng.choice(files(owner))
        return content if rng.random() < 0.02 else changed_file(rng, content)
    if parameter.name == "columns" and "str" in wanted:
        return mutated(rng, {"age": "age", "kind": "kind"})
    if "Treatments" in wanted and rng.random() < 0.7:
        return rng.choice(("refuse", "clamp", "cell"))
    if "Literal" in wanted and rng.random() < 0.7:
        return rng.choice(("records", "persons"))
    if "dict" in wanted or "Mapping" in wanted or parameter.name == "data":
        data = rng.choice(plain_data(owner))
        return data if rng.random() < 0.02 else mutated(rng, data)
    if "CountsTables" in wanted:
        return rng.choice(contingencies())
    if "Histogram" in wanted:
        return rng.choice(histograms())
    if "Bound" in wanted:
        return Bound.stated(rng.choice((1, 5)), "records", "patient")
    if "tuple" in wanted or "IntArray" in wanted or "int" in wanted:
        return _whole(rng, wanted)
    if "Domain" in wanted or "Attributes" in wanted:
        return rng.choice(domains())
    if "Policy" in wanted:
        return rng.choice(policies())
    return _loose(rng)


@functools.cache
def tables():
    """Return tables of a database: values that fit, stray ones, and another type."""
    import ibis

    database = ibis.duckdb.connect()
    for name, rows in {
        "fits": "(1.5, 'a'), (8, 'c')",
        "stray": "(-7.25, 'x'), (NULL, NULL)",
        "other": "('no number', 3)",
    }.items():
        select = f"SELECT * FROM (VALUES {rows}) AS t(age, kind)"
        database.raw_sql(f"CREATE TABLE {name} AS {select}")
    return [database.table(name) for name in database.list_tables()]


def _whole(rng, wanted):
    """Return numbers in the nesting that is wanted, changed in a third of all draws."""
    if "float" in wanted:
        usual = ((0.0, 9.5), (-1, 1))
    elif "tuple" in wanted:
        usual = (((0,),), ((0,), ()), ((0, 1),))
    elif "IntArray" in wanted:
        usual = ([np.zeros((1, 3), dtype=int)], [[[0, 1], [2, 1]], [[1], [0]]])
    else:
        usual = (1, 2, 3, (2, 3))
    made = rng.choice(usual)
    return made if rng.random() < 0.67 else mutated(rng, made)


def _loose(rng):
    """Return edges, levels, records, options: whatever a caller may have at hand."""
    usual = (
        [0, 1, 2.5, 9],
        ["a", "b", "c"],
        ["2024-01-01", "2024-02-01", "2024-03-01"],
        {"age": [1, 2, 8.5], "kind": ["a", "a", "b"]},
        np.arange(6),
        np.array([[0, 1], [2, 3]]),
        "clamp",
        "error",
        "age",
    )
    kind = rng.randrange(3)
    if kind == 0:
        return mutated(rng, rng.choice(usual))
    return rng.choice(usual) if kind == 1 else array(rng)


@functools.cache
def _owner(door):
    """Return the class whose method a door is, or that a function returns."""
    value = owner = bf
    for name in door.split("."):
        value, owner = getattr(value, name), value
    if inspect.isclass(owner):
        return owner
    home = inspect.unwrap(value).__globals__
    named = home.get(str(inspect.signature(value).return_annotation))
    if typing.get_origin(named) is typing.Annotated:
        named = typing.get_args(named)[0]
    several = isinstance(named, types.UnionType)
    return named if several or inspect.isclass(named) else None
