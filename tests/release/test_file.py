"""Release files made to harm: each is refused, quickly, and nothing else happens."""

from __future__ import annotations

import io
import json
import pickle
import tracemalloc
import warnings
import zipfile
import zlib

import numpy as np
import pytest

import blowfish_fast as bf
from blowfish_fast.errors import ReleaseFileError
from blowfish_fast.release import file as release_file

LINE = bf.Domain(64)
ESTIMATE = "array0.npy"
"""The estimate is the first array of a file."""


@pytest.fixture(scope="module")
def members():
    """The parts of a good file."""
    full = bf.policies.Full(LINE)
    made = bf.Laplace(full, bf.workloads.Identity(LINE), epsilon=1)
    content = made.release(np.arange(64), rng=1).to_bytes()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(*members, method=zipfile.ZIP_DEFLATED):
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        with zipfile.ZipFile(file, "w", method) as archive:
            for name, content in members:
                archive.writestr(name, content)
    return file.getvalue()


def with_plain(members, **changes):
    """Return a file whose plain data has other entries."""
    plain = json.loads(members["release.json"]) | changes
    changed = members | {"release.json": json.dumps(plain).encode()}
    return zipped(*changed.items())


def with_array(members, content):
    return zipped(*(members | {ESTIMATE: content}).items())


def saved(array, **options):
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


def refused(content, words=None):
    with pytest.raises(ReleaseFileError, match=words):
        bf.Release.from_bytes(content)


def test_the_good_file_is_read(members):
    assert bf.Release.from_bytes(zipped(*members.items())).domain == LINE


def test_a_bomb_is_not_unpacked(members, monkeypatch):
    bomb = with_array(members, saved(np.zeros(2**21)))
    assert len(bomb) < 2**16
    monkeypatch.setattr(release_file, "memory_room", lambda: 2.0**22)
    tracemalloc.start()
    refused(bomb, "unpacks to 16 MiB")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**20


def test_a_bomb_that_lies_about_its_size_is_cut_off(members):
    content = bytearray(with_array(members, saved(np.zeros(2**21))))
    true = (2**24 + 128).to_bytes(4, "little")
    assert content.count(true) == 2
    tracemalloc.start()
    refused(bytes(content).replace(true, (600).to_bytes(4, "little")))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**21


@pytest.mark.parametrize("name", ["../escaped.npy", "/escaped.npy", "a/../../escaped"])
def test_names_are_never_paths(members, name, tmp_path, monkeypatch):
    inside = tmp_path / "inside"
    inside.mkdir()
    monkeypatch.chdir(inside)
    content = zipped(*members.items(), (name, saved(np.ones(3))))
    assert bf.Release.from_bytes(content).domain == LINE
    refused(with_plain(members, estimate={"array": name.removesuffix(".npy")}))
    assert list(tmp_path.rglob("*")) == [inside]


@pytest.mark.parametrize(
    "shape", [(2**40,), (2**62, 4), (-5,), (2**20, 2**20)], ids=str
)
def test_huge_shapes_are_only_words(members, shape):
    head = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(head, header)
    refused(with_array(members, head.getvalue() + b"\x00" * 64))


def test_pickles_are_never_opened(members):
    class Trap:
        def __reduce__(self):
            return pytest.fail, ("a pickle was opened",)

    trapped = saved(np.array([Trap()], dtype=object), allow_pickle=True)
    refused(with_array(members, trapped))
    refused(with_array(members, pickle.dumps(Trap())))
    refused(pickle.dumps(Trap()))


def test_a_name_given_twice_is_refused(members):
    twice = zipped(*members.items(), (ESTIMATE, saved(np.ones(64))))
    refused(twice, "same name")


def test_every_truncation_is_refused(members):
    whole = zipped(*members.items())
    for length in range(0, len(whole) - 1, 7):
        refused(whole[:length])


@pytest.mark.parametrize(
    "changes",
    [
        {"estimate": {"array": "release"}},
        {"estimate": 1e400},
        {"details": [1]},
        {"details": {"a": {"array": "array0"}, "b": {"array": "nothing"}}},
        {"measurements": [{}]},
        {"measurements": 7},
        {"domain": {"attributes": [{"size": 2**70}]}},
        {"domain": {"attributes": [{"size": 64}] * 40}},
        {"interval_scope": "everything"},
        {"format": 99},
    ],
    ids=range(10),
)
def test_plain_data_that_does_not_fit_is_refused(members, changes):
    refused(with_plain(members, **changes))


def test_numbers_of_a_billion_digits_are_refused_at_once(members):
    promise = json.loads(members["release.json"])["guarantee"]
    for text in ("1e999999999", "1/1e999999999", "9" * 10**5):
        refused(with_plain(members, guarantee=promise | {"epsilon": text}))


def test_nested_without_end_is_refused(members):
    deep = b'{"format": 1, "details": ' + b"[" * 10**5 + b"]" * 10**5 + b"}"
    refused(zipped(*(members | {"release.json": deep}).items()))


def test_flipped_bits_inside_a_member_are_noticed(members):
    whole = bytearray(zipped(*members.items(), method=zipfile.ZIP_STORED))
    at = whole.index(members[ESTIMATE]) + 200
    whole[at] ^= 1
    refused(bytes(whole), "CRC")
    assert zlib.crc32(members[ESTIMATE]) != zlib.crc32(bytes(whole[at:]))


@pytest.mark.parametrize(
    "values",
    [[0.0, -3.0, 127.0], [300.0], [-0.0, 1.0], [0.5], [np.nan], [2.0**40], [], [2**20]],
)
def test_whole_numbers_take_few_bytes_and_keep_every_bit(values):
    given = np.array(values, dtype=np.int64 if values == [2**20] else np.float64)
    kept = release_file.narrowed(given)
    assert kept.astype(given.dtype).tobytes() == given.tobytes()
    assert (kept.itemsize < 8) == (values in ([0.0, -3.0, 127.0], [300.0], [2**20]))


def test_noise_is_stored_and_what_repeats_is_packed():
    noise = np.random.default_rng(1).normal(size=2**14)
    kinds = [release_file._packing(one) for one in (noise, np.ones(2**14), noise[:9])]
    assert kinds == [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED]


ARRAYS = {
    "counts": np.arange(5),
    "turned": np.arange(6.0).reshape(2, 3).T,
    "none": np.zeros(0),
    "one": np.array(3.5),
    "marks": np.array([True, False]),
    "levels": np.array(["f", "männlich"]),
    "swapped": np.arange(6, dtype=">i4"),
    "pairs": np.zeros(2, dtype=[("a", "i4"), ("b", "f8")]),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_is_written_as_numpy_writes_it(name):
    written = release_file.write_archive("x.json", {"own": ARRAYS[name]})
    with zipfile.ZipFile(io.BytesIO(written)) as archive:
        assert json.loads(archive.read("x.json")) == {"own": {"array": "array0"}}
        assert archive.read("array0.npy") == saved(ARRAYS[name])


def test_a_small_archive_is_the_one_that_zipfile_writes():
    made = release_file.write_archive("x.json", {"format": 1, **ARRAYS})
    with zipfile.ZipFile(io.BytesIO(made)) as archive:
        parts = [(one, archive.read(one)) for one in archive.namelist()]
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in parts:
            info = zipfile.ZipInfo(name)
            info.create_system = 3
            archive.writestr(info, content)
    assert made == file.getvalue()


@pytest.mark.parametrize("cells", [4, 2**13])
def test_archives_of_either_size_hold_their_arrays(cells):
    array = np.random.default_rng(7).random(cells)
    plain = {"text": "ä", "own": [{"deep": array}, np.int16(3)]}
    written = release_file.write_archive("x.json", {"format": 1, **plain})
    with zipfile.ZipFile(io.BytesIO(written)) as archive:
        assert archive.testzip() is None
    found = release_file.read_archive(written, "x.json", dict)
    assert (found["text"], found["own"][1]) == ("ä", 3)
    assert np.array_equal(found["own"][0]["deep"], array)


def test_an_array_is_no_part_of_a_promise(members):
    promise = json.loads(members["release.json"])["guarantee"]
    for policy in ({"array": "array0"}, {"kind": {"array": "array0"}}):
        refused(with_plain(members, guarantee=promise | {"policy": policy}))


@pytest.mark.parametrize("order", [[0, 0, 1], [1, 2, 3], [[0, 1]], [-1, 0, 1]])
def test_an_order_of_cells_names_each_once(order):
    with pytest.raises(ReleaseFileError, match="names some of them twice"):
        release_file._permutation(order)
    assert release_file._permutation([2, 0, 1]).tolist() == [2, 0, 1]
