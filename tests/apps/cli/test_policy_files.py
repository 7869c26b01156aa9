"""Blocks and graphs by the names of categories; nothing is guessed from numbers."""

from __future__ import annotations

import numpy as np
import pytest

from blowfish_fast.apps.cli.parsing.domain import parse_domain
from blowfish_fast.apps.cli.parsing.policy import (
    edges_from_file,
    labels_from_file,
    parse_policy,
)
from blowfish_fast.errors import InputError

TOWNS = parse_domain("town=categories:Bern,Köniz,Chur,Thun")
CODES = parse_domain("code=categories:1,2,3,4")


def written(folder, text):
    path = folder / "pairs.csv"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("heading", ["", "town,canton\n"])
def test_blocks_are_named(heading, tmp_path):
    path = written(tmp_path, heading + "Chur,GR\nBern,BE\nThun,BE\nKöniz,BE\n")
    labels = labels_from_file(path, TOWNS)
    assert len({labels[0], labels[1], labels[3]}) == 1
    assert labels[2] != labels[0]
    policy = parse_policy(f"blocks:{path}", TOWNS)
    assert policy.edge_count == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Bern,BE\nChur,GR\n", "has none for Köniz, Thun"),
        ("Bern,BE\nBern,GR\n", "into two blocks"),
        ("Bern,BE\nKoniz,BE\n", "did you mean 'Köniz'"),
        ("Bern,BE\nKöniz,BE,x\n", "CATEGORY,BLOCK"),
    ],
)
def test_blocks_that_leave_a_category_open_are_refused(text, message, tmp_path):
    with pytest.raises(InputError, match=message):
        labels_from_file(written(tmp_path, text), TOWNS)


@pytest.mark.parametrize(
    "text", ["Bern,Thun\nabsent,Chur\n", "a;b\nBern;Thun\nabsent;Chur"]
)
def test_edges_are_named(text, tmp_path):
    found = edges_from_file(written(tmp_path, text), TOWNS)
    np.testing.assert_array_equal(found, [[0, 3], [-1, 2]])


def test_cells_may_be_numbered_where_no_category_is_a_number(tmp_path):
    path = written(tmp_path, "from,to\n0,1\n1,2\n")
    np.testing.assert_array_equal(edges_from_file(path, TOWNS), [[0, 1], [1, 2]])
    path = written(tmp_path, "0\n0\n1\n0\n")
    np.testing.assert_array_equal(labels_from_file(path, TOWNS), [0, 0, 1, 0])


def test_numbers_that_could_be_categories_must_be_declared(tmp_path):
    for text in ("1,2\n", "from,to\n1,2\n"):
        with pytest.raises(InputError, match="which is meant"):
            edges_from_file(written(tmp_path, text), CODES)
    by_name = edges_from_file(written(tmp_path, "category,category\n1,2\n"), CODES)
    by_cell = edges_from_file(written(tmp_path, "cell,cell\n1,2\n"), CODES)
    np.testing.assert_array_equal(by_name, [[0, 1]])
    np.testing.assert_array_equal(by_cell, [[1, 2]])


def test_a_category_called_absent_is_a_category(tmp_path):
    domain = parse_domain("work=categories:present,absent")
    found = edges_from_file(written(tmp_path, "present,absent\n"), domain)
    np.testing.assert_array_equal(found, [[0, 1]])


def test_public_totals_cost_what_they_must():
    people = parse_domain(["age=0:30:10", "sex=categories:f,m"])
    policy = parse_policy("full+known:sex", people)
    assert policy.group_size == 2
    assert parse_policy("product:line,full+known:sex", people).group_size == 2
    with pytest.raises(InputError, match="did you mean 'sex'"):
        parse_policy("full+known:sx", people)
