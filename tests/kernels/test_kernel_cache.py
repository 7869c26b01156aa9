"""Compiled kernels are kept, come with wheels, and run only where they may."""

from __future__ import annotations

import ast
import json
import shutil
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from numba.core import caching, config

from blowfish_fast._support.compiler_watch import in_plain_python, is_ready
from blowfish_fast._support.source_stamps import import_head, source_stamp
from blowfish_fast.kernels import _cache, _jit
from blowfish_fast.kernels._cache import shipped_target

ROOT = Path(_cache.__file__).parent
HOST = ("x86_64-unknown-linux-gnu", "emeraldrapids", "+avx2,+fma,-amx-tile,+avx512f")


@pytest.fixture(autouse=True)
def _nothing_is_remembered():
    def forget():
        source_stamp.cache_clear()
        shipped_target.cache_clear()

    forget()
    yield
    forget()


class Source:
    """A loader of one module that is nowhere on disk."""

    def __init__(self, name, text):
        self.name, self.text = f"blowfish_fast.kernels.{name}", text
        module = ModuleType(self.name)
        module.__file__ = self.name
        module.__package__ = "blowfish_fast.kernels"
        module.__loader__ = self
        sys.modules[self.name] = module

    def get_data(self, path):
        return self.text.encode()


@pytest.fixture
def sources():
    made = [
        Source("caller_file", "from .called_file import (\n one,\n)\n"),
        Source("called_file", "from blowfish_fast.kernels import constant_file as c\n"),
        Source("constant_file", "SIZE = 3\n"),
        Source("other_file", "SIZE = 3\n"),
    ]
    yield {one.name.rpartition(".")[2]: one for one in made}
    for one in made:
        del sys.modules[one.name]


@pytest.mark.parametrize(
    ("changed", "noticed"),
    [
        ("caller_file", True),
        ("called_file", True),
        ("constant_file", True),
        ("other_file", False),
    ],
)
def test_the_stamp_of_a_file_follows_what_its_kernels_call(sources, changed, noticed):
    before = source_stamp(sources["caller_file"].name)
    sources[changed].text += "# changed\n"
    source_stamp.cache_clear()
    assert (source_stamp(sources["caller_file"].name) != before) is noticed


@pytest.mark.parametrize(
    "file",
    sorted(ROOT.rglob("*.py")),
    ids=lambda file: f"{file.parent.name}.{file.stem}",
)
def test_every_kernel_file_that_is_imported_is_part_of_the_stamp(file):
    whole = ast.parse(file.read_text()).body
    head = ast.parse(import_head(file.read_bytes())).body
    everything, read = (
        [ast.dump(node) for node in body if isinstance(node, ast.ImportFrom)]
        for body in (whole, head)
    )
    assert read == everything
    for node in whole:
        if isinstance(node, ast.Import):
            assert not any("blowfish" in name.name for name in node.names)


@pytest.mark.parametrize(
    ("target", "other", "runs"),
    [
        ((HOST[0], "x86-64-v3", "+avx2,+fma"), {}, True),
        ((HOST[0], "generic", ""), {}, True),
        ((HOST[0], "new", "+avx2,+avx10"), {}, False),
        ((HOST[0], "new", "+amx-tile"), {}, False),
        (("aarch64-unknown-linux-gnu", "generic", ""), {}, False),
        ((HOST[0], "generic", ""), {"numba": "0.1"}, False),
        ((HOST[0], "generic", ""), {"llvmlite": "0.1"}, False),
        ((HOST[0], "generic", ""), {"numpy": "1"}, False),
        ((HOST[0], "generic", ""), {"python": "cpython-27"}, False),
    ],
)
def test_machine_code_runs_only_where_all_that_it_needs_is_there(
    tmp_path, monkeypatch, target, other, runs
):
    monkeypatch.setattr(_cache, "SHIPPED", tmp_path)
    stated = {"target": target, "versions": _cache.versions() | other}
    (tmp_path / "target.json").write_text(json.dumps(stated))
    assert shipped_target(HOST) == (target if runs else None)


def test_a_plain_installation_has_no_machine_code(tmp_path, monkeypatch):
    monkeypatch.setattr(_cache, "SHIPPED", tmp_path)
    assert shipped_target(HOST) is None


def third(values):
    total = 0.0
    for value in values:
        total += value / 3.0
    return total


def new_kernel(cache, monkeypatch):
    monkeypatch.setattr(config, "CACHE_DIR", str(cache))
    return _jit.kernel(third)


@pytest.mark.parametrize("version", ["here", "another"])
def test_a_kernel_comes_from_the_wheel_or_is_compiled_to_the_same_bits(
    tmp_path, monkeypatch, version
):
    shipped = tmp_path / "compiled"
    monkeypatch.setattr(_cache, "SHIPPED", shipped)
    values = np.arange(1000) / 7.0
    made = new_kernel(tmp_path / "maker", monkeypatch)
    answer = made(values)
    shutil.copytree(made._cache.cache_path, shipped / Path(__file__).parent.name)
    target = made.targetctx.codegen().magic_tuple()
    stated = {"target": target, "versions": _cache.versions()}
    stated["versions"]["numba"] += "" if version == "here" else ".other"
    (shipped / "target.json").write_text(json.dumps(stated))
    shipped_target.cache_clear()
    user = tmp_path / "user"
    found = new_kernel(user, monkeypatch)
    assert found(values) == answer
    compiled = sum(found.stats.cache_misses.values())
    assert compiled == (version == "another")
    assert bool(list(user.rglob("*.nbc"))) == (version == "another")


def test_a_full_disk_does_not_end_a_release(tmp_path, monkeypatch):
    def full(self, key, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(caching.IndexDataCacheFile, "save", full)
    assert new_kernel(tmp_path, monkeypatch)(np.full(3, 3.0)) == 3.0


def test_where_nothing_can_be_written_kernels_are_compiled_in_each_process(monkeypatch):
    nowhere = [_cache._ReadOnlyFolder]
    monkeypatch.setattr(_cache._Results, "_locator_classes", nowhere)
    kernel = _jit.kernel(third)
    monkeypatch.setattr(kernel._cache._impl.locator, "_cache_path", "/dev/null/folder")
    assert kernel(np.full(3, 3.0)) == 3.0


def halved(number):
    return number // 2


def halved_twice(number):
    return halved(halved(number))


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="nothing is compiled")
def test_a_kernel_is_ready_once_it_was_compiled_here_or_before(tmp_path, monkeypatch):
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    first = _jit.kernel(halved)
    assert not is_ready(first)
    assert first(9) == 4
    assert is_ready(first)
    assert is_ready(_jit.kernel(halved))
    assert is_ready(halved)


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="nothing is compiled")
def test_a_kernel_in_plain_python_compiles_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    inner = _jit.kernel(halved)
    monkeypatch.setitem(globals(), "halved", inner)
    outer = _jit.kernel(halved_twice)
    assert in_plain_python(outer)(9) == 2
    assert not inner.signatures
    assert not outer.signatures
    assert outer(9) == 2
