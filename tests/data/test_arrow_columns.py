"""Arrow columns become what Arrow itself makes of them, and pandas is not imported."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from blowfish_fast.data.columns import arrow_strings, plain_array, plain_codes

pyarrow = pytest.importorskip("pyarrow")
KINDS = ["int8", "int64", "uint16", "float32", "float64", "bool", "string", "date32"]
MOMENTS = [pyarrow.timestamp(unit) for unit in ("s", "us", "ns")]


def same(column, expected):
    converted = plain_array(column)
    assert converted.dtype == expected.dtype
    np.testing.assert_array_equal(converted, expected)


@pytest.mark.parametrize("kind", [*KINDS, *MOMENTS], ids=str)
@pytest.mark.parametrize("missing", [False, True], ids=["whole", "gaps"])
def test_a_column_is_what_arrow_makes_of_it(kind, missing):
    texts = [None if missing and at % 3 == 1 else str(at % 2) for at in range(21)]
    kind = kind if isinstance(kind, pyarrow.DataType) else pyarrow.type_for_alias(kind)
    column = pyarrow.array(texts)
    if kind != column.type:
        whole = "int32" if kind == pyarrow.date32() else "int64"
        column = column.cast(whole).cast(kind)
    for part in (column, column[3:], column[3:11], column[:0]):
        same(part, part.to_numpy(zero_copy_only=False))
    for pieces in ([column, column[2:]], []):
        chunked = pyarrow.chunked_array(pieces, kind)
        same(chunked, chunked.to_numpy())


@pytest.mark.parametrize("kind", [None, "large_string"])
@pytest.mark.parametrize("loaded", [False, True], ids=["without", "beside"])
def test_texts_are_what_arrow_makes_of_them(kind, loaded, monkeypatch):
    monkeypatch.delitem(sys.modules, "pandas", raising=False)
    if loaded:
        monkeypatch.setitem(sys.modules, "pandas", sys)
    kind = kind and pyarrow.type_for_alias(kind)
    texts = ["a", None, "", "München, \N{SNOWMAN}", 'say "b"']
    array = arrow_strings(texts, kind)
    array.validate(full=True)
    assert array.to_pylist() == texts
    assert array.type == (kind or pyarrow.string())


def test_what_is_no_text_is_left_to_arrow(monkeypatch):
    monkeypatch.delitem(sys.modules, "pandas", raising=False)
    assert arrow_strings([]).to_pylist() == []
    assert arrow_strings([1, 2]).to_pylist() == [1, 2]
    with pytest.raises((pyarrow.ArrowException, TypeError)):
        arrow_strings(["a", 2])


def test_codes_are_whole_and_missing_ones_the_last():
    assert plain_codes(pyarrow.array([3, None, 1], "int32")).tolist() == [3, -1, 1]
    assert plain_codes(pyarrow.array([3, 1], "int8")).dtype == np.int64


@pytest.mark.long
def test_a_table_is_released_without_importing_pandas(tmp_path):
    rows = "".join(f"{age},{kind}\n" for age in range(50) for kind in ("a", "b", ""))
    (tmp_path / "people.csv").write_text("age,kind\n" + rows)
    words = (
        "release --data people.csv --domain age=0:50:10 --domain kind=categories:a,b "
    )
    words += (
        "--policy full --workload identity --epsilon 1 --missing cell --out a.blowfish"
    )
    code = (
        "import sys\n"
        "from blowfish_fast.apps.cli.main import run_command\n"
        f"assert run_command({words.split()!r}) == 0\n"
        "look = ['first-look', 'people.csv', '--epsilon', '1']\n"
        "assert run_command(look) == 0\n"
        "assert 'duckdb' in sys.modules\n"
        "assert 'pandas' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)
