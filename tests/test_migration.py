"""What the page for users of other libraries shows of them, run in those packages.

The page shows how something is done elsewhere in blocks that begin with the package's
name, and states results as comments; our own lines are doctests of the page:

    # OpenDP
    noisy.map(d_in=1)  # 0.5        the line must give what its comment says
"""

from __future__ import annotations

import ast
import doctest
import re
from pathlib import Path
from typing import Any

import pytest

HOWTO = Path(__file__).parent.parent / "docs" / "howto"
PAGE = HOWTO / "come_from_other_libraries.md"
FOREIGN = {"opendp": "# OpenDP", "diffprivlib": "# diffprivlib"}


def blocks(package: str) -> list[str]:
    """Return the blocks of the page that begin with the package's name."""
    fenced = r"^```text\n(.*?)^```$"
    texts = re.findall(fenced, PAGE.read_text(), re.DOTALL | re.MULTILINE)
    return [block for block in texts if block.startswith(FOREIGN[package])]


def stated(line: str) -> tuple[str, Any] | None:
    """Return an expression and the value its comment states; None without one."""
    code, _, comment = line.partition("  # ")
    if not comment or line.startswith((" ", "#")):
        return None
    return code, ast.literal_eval(comment)


def run(block: str, names: dict[str, Any]) -> int:
    """Run a block; compare every stated value, and return how many there were."""
    lines = block.splitlines()
    last, compared = 0, 0
    for number, line in enumerate(lines):
        promise = stated(line)
        if promise is None:
            continue
        exec("\n".join(lines[last:number]), names)
        code, value = promise
        assert eval(code, names) == value, line
        last, compared = number + 1, compared + 1
    exec("\n".join(lines[last:]), names)
    return compared


@pytest.mark.parametrize("package", sorted(FOREIGN))
def test_foreign_lines_give_what_their_comments_say(package: str) -> None:
    pytest.importorskip(package, exc_type=ImportError)
    names: dict[str, Any] = {}
    compared = [run(block, names) for block in blocks(package)]
    assert sum(compared) >= 3


@pytest.mark.parametrize("package", sorted(FOREIGN))
def test_every_part_shows_foreign_and_own_lines(package: str) -> None:
    assert len(blocks(package)) >= 3
    own = package.replace("opendp", "OpenDP")
    (part,) = re.findall(
        rf"^## {own}\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.DOTALL | re.MULTILINE
    )
    assert "```python\n>>> " in part


@pytest.mark.parametrize("package", ["Tumult Analytics", "SmartNoise"])
def test_what_is_only_shown_can_be_read_and_stands_beside_lines_that_run(
    package: str,
) -> None:
    (part,) = re.findall(
        rf"^## {package}\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.DOTALL | re.MULTILINE
    )
    shown = re.findall(r"^```text\n(.*?)^```$", part, re.DOTALL | re.MULTILINE)
    assert [block.splitlines()[0] for block in shown] == [f"# {package}"]
    ast.parse(shown[0])
    assert "```python\n>>> " in part
    # Each row names something of theirs, and something of ours that is there.
    ours = [row.split("|")[2] for row in part.splitlines() if row.startswith("|")][2:]
    names = re.findall(r"`((?:\w+\.)?\w+)(?=[(`])", " ".join(ours))
    assert len(names) >= 5
    for name in names:
        assert _is_ours(name), name


def _is_ours(name: str) -> bool:
    """Tell whether a word of the page is a name of this package."""
    import blowfish_fast as bf

    home, _, own = name.rpartition(".")
    made = {"release": bf.HistogramRelease, "a": bf.HistogramRelease, "bf": bf}
    made |= {"policy": bf.policies.Policy}
    homes = [made.get(home, getattr(bf, home, None))] if home else [bf, bf.policies]
    return any(hasattr(home, own) for home in homes)


def test_a_wrong_comment_is_noticed() -> None:
    assert run("# a package\ntotal = 1 + 1\ntotal  # 2\n", {}) == 1
    with pytest.raises(AssertionError, match="total"):
        run("# a package\ntotal = 1 + 1\ntotal  # 3\n", {})


def sections() -> list[str]:
    """Return the parts of the page, one for each library."""
    return re.split(r"^(?=## )", PAGE.read_text(), flags=re.MULTILINE)[1:]


@pytest.mark.parametrize(
    "section", sections(), ids=lambda one: one.splitlines()[0].removeprefix("## ")
)
def test_every_section_runs_by_itself(section, tmp_path, monkeypatch, capsys) -> None:
    # Whoever comes from one library copies its section, and none of the others.
    monkeypatch.chdir(tmp_path)
    fenced = r"^```python\n(.*?)^```$"
    code = "".join(re.findall(fenced, section, re.DOTALL | re.MULTILINE))
    page = doctest.DocTestParser().get_doctest(code, {}, "page", None, None)
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    result = doctest.DocTestRunner(optionflags=options).run(page)
    assert result.attempted > 0
    assert result.failed == 0, capsys.readouterr().out
