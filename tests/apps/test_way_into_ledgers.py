"""The category that is stated to a ledger is the one that it pays for, any text."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings

import blowfish_fast as bf
from blowfish_fast.data.listed_items import written_item

from .cli.asking import told
from .test_way_in import AWKWARD, in_toml, lists, records_of

pyarrow = pytest.importorskip("pyarrow")
pytest.importorskip("duckdb")


def parquet_of(texts, path):
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table({"subject": records_of(texts)}), path)


def written_list(texts):
    return f"subject=categories:{','.join(map(written_item, texts))}"


def ledger_releases(texts, folder, amended):
    """Release counts through a ledger, as typed; return the counts that came out."""
    book, data, out = (folder / name for name in ("book", "a.parquet", "out.blowfish"))
    parquet_of(texts, data)
    policy = ["--policy", "full"]
    first = ["--domain", "subject=categories:a,b"] if amended else ["--domain"]
    first += [] if amended else [written_list(texts)]
    told("ledger", "create", str(book), *first, *policy, "--epsilon", "100")
    if amended:
        anew = ["--domain", written_list(texts)]
        told("ledger", "amend", str(book), *anew, *policy)
    asked = ["--data", str(data), "--domain", written_list(texts), *policy]
    paid = ["--workload", "identity", "--mechanism", "laplace", "--epsilon", "60"]
    told("release", *asked, *paid, "--ledger", str(book), "--out", str(out))
    with bf.Ledger(book) as ledger:
        held = [str(one) for one in ledger.policy.domain.attributes[0].levels]
        assert held == texts
        assert ledger.spent == 60
    described = told("ledger", "status", str(book))
    (attribute,) = described["policy"]["domain"]["attributes"]
    assert [str(one) for one in attribute["levels"]] == texts
    release = bf.Release.load(out)
    assert [str(one) for one in release.domain.attributes[0].levels] == texts
    return [round(one) for one in release.estimate.tolist()]


def ledger_lists(test):
    for at in range(0, len(AWKWARD), 12):
        test = example(AWKWARD[at : at + 12])(test)
    return test


@pytest.mark.long
@settings(max_examples=5, deadline=None)
@given(lists(6).filter(lambda texts: len(texts) > 1))
@example(["01", "1"])
@example(["1", "2"])
@example(["1.0", "2.0"])
@ledger_lists
@pytest.mark.parametrize("amended", [False, True])
def test_a_ledger_counts_the_category_that_was_stated(amended, texts):
    with TemporaryDirectory() as name:
        counted_here = ledger_releases(texts, Path(name), amended)
    # Noise of scale 2 / 60 is 0 in all but one of 10^12 draws.
    assert counted_here == [*range(1, len(texts) + 1)]


@pytest.mark.long
@settings(max_examples=3, deadline=None)
@given(lists(4).filter(lambda texts: len(texts) > 1))
@ledger_lists
def test_a_column_that_joins_a_ledger_later_keeps_its_categories(texts):
    with TemporaryDirectory() as name:
        folder = Path(name)
        book, data = folder / "book", folder / "a.parquet"
        parquet_of(texts, data)
        path = folder / "job.toml"
        listed = ", ".join(map(in_toml, texts))
        path.write_text(
            f'[data]\nsource = "{data}"\n[domain]\nsubject = [{listed}]\n'
            '[policy]\nkind = "add_remove"\n[workload]\nkind = "identity"\n'
            '[mechanism]\nname = "laplace"\n'
            f'[budget]\nepsilon = 60\nledger = "{book}"\n'
            f'[output]\nrelease = "{folder / "out.blowfish"}"\n',
            encoding="utf-8",
        )
        stated = ["--domain", "age=0:10:1", "--policy", "add_remove"]
        told("ledger", "create", str(book), *stated, "--epsilon", "100")
        with bf.Ledger(book) as ledger:
            ages = bf.Histogram(ledger.policy.domain, [5] * 10)
            ledger.release(bf.Laplace(ledger.policy, epsilon=1), ages)
        more = ["--add", written_list(texts), "--policy", "add_remove"]
        told("ledger", "amend", str(book), *more, "--why", "a second column")
        told("release", str(path))
        with bf.Ledger(book) as ledger:
            held = [str(one) for one in ledger.policy.domain.attributes[1].levels]
            assert held == texts
        estimate = bf.Release.load(folder / "out.blowfish").estimate
        assert [round(one) for one in estimate.tolist()] == [*range(1, len(texts) + 1)]
