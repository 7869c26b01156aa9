"""Every block of code in the README and in the documentation runs.

```python    doctests; pytest collects the page itself (`--doctest-glob`)
```console   `$ command` lines, run here in order, one empty folder per page, each a
             process that shares loaded packages of others (`command_server`);
             the first line of output that is shown must be printed, and a command
             that is meant to fail ends in `# exit code 3`
```toml      parsed; a job file below a line `$ ... --job NAME.toml` is written there
```json      parsed
```sh        not run here; `NOT_RUN_HERE` says where, or why not
```text      output and drawings
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.command_server import SECONDS, CommandServer, untraced

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    page
    for page in [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *ROOT.glob("docs/**/*.md"),
    ]
    if page.exists()
)
KINDS = ("python", "console", "toml", "json", "sh", "text")
# Directives of the site hold prose, and code only in blocks of their own.
# What is included literally is a file that other tests run.
DIRECTIVES = (
    *("toctree", "include", "literalinclude", "note", "tip", "warning", "important"),
    "figure",
)

INSTALLS = "installs; the parts tests and wheels of .ci/run do it in empty environments"
SERVES = "installs, and serves until it is stopped; tests/server starts the server"
NOT_RUN_HERE: dict[str, str] = {
    "python3 -m venv .venv && .venv/bin/pip install -q --no-compile -e "
    "'.[demo]' && .venv/bin/blowfish demo": INSTALLS,
    "python3 -m venv .venv && .venv/bin/pip install -e '.[dev]'": INSTALLS,
    "pip install '.[plot,files]'": INSTALLS,
    "pip install '.[web]'": SERVES,
    ".venv/bin/pip install -q -e '.[web]' && .venv/bin/blowfish serve --demo": SERVES,
    "blowfish serve --folder /srv/explorer --database postgres://reader@db/clinic "
    "--tables tables.json": "needs a database; tests/explorer runs PostgreSQL",
    "blowfish answer survey.blowfish --where work=looking --share --of population": (
        "asks the reader's survey; tests/apps/cli/test_population_questions.py runs all"
    ),
    "blowfish audit --quick": "minutes to an hour; the part audit of .ci/run",
    "blowfish audit --record docs/trust.json": (
        "an hour, and changes the README; tests/trust and tests/apps/cli run them"
    ),
    "BLOWFISH_FAULTS=long python -m pytest tests/privacy/test_faults.py": (
        "many minutes; the short form of the same file runs with the tests"
    ),
    "python asv_benchmarks/ratio_check.py": (
        "needs an idle machine and minutes; the part benchmarks of .ci/run"
    ),
    "python examples/scale_simulation.py --quick": (
        "minutes of measuring; tests/test_scale_simulation.py runs the quick form"
    ),
}
"""The first command of each `sh` block, and where it runs or why it cannot."""


class Block(NamedTuple):
    """A fenced block: its page, line, info string and text."""

    page: Path
    line: int
    kind: str
    text: str

    @property
    def where(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks_of(page: Path) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    found: list[Block] = []
    fence = kind = ""
    start, lines = 0, []
    for number, line in enumerate(page.read_text().splitlines(), 1):
        mark = re.match(r" *(`{3,}|~{3,})(.*)$", line)
        if not fence and mark:
            fence, kind, start, lines = mark[1], mark[2].strip(), number, []
        elif fence and mark and mark[1].startswith(fence) and not mark[2].strip():
            found.append(Block(page, start, kind, "\n".join(lines)))
            fence = ""
        elif fence:
            lines.append(line)
    assert not fence, f"{page.name}:{start}: the block is never closed"
    return found


BLOCKS = [block for page in PAGES for block in blocks_of(page)]


def of_kind(kind: str) -> list[Block]:
    return [block for block in BLOCKS if block.kind == kind]


def names(blocks: list[Block]) -> list[str]:
    return [block.where for block in blocks]


class Step(NamedTuple):
    """A command, the exit code that the page states, and the first line it shows."""

    command: str
    code: int
    shown: str


def steps_of(text: str) -> list[Step]:
    """Return the commands of a console block."""
    steps: list[Step] = []
    for line in text.replace("\\\n", "").splitlines():
        if line.startswith("$ "):
            stated = re.search(r"# exit code (\d+)\s*$", line)
            steps.append(Step(line[2:], int(stated[1]) if stated else 0, ""))
        elif line.strip() and steps and not steps[-1].shown:
            steps[-1] = steps[-1]._replace(shown=line.strip())
    return steps


def shows(output: str, line: str) -> bool:
    """Say whether a line was printed; runs of blanks and `...` stand for anything."""
    words = [re.escape(part) for part in re.split(r"\s+|\.\.\.", line) if part]
    return bool(words) and bool(re.search(r".*?".join(words), output, re.DOTALL))


def test_every_block_is_of_a_kind_that_is_checked() -> None:
    for block in BLOCKS:
        directive = re.fullmatch(r"\{([\w-]+)\}.*", block.kind)
        if directive:
            known = directive[1] in DIRECTIVES
            assert known, f"{block.where}: {block.kind} is not checked"
        else:
            assert block.kind in KINDS, (
                f"{block.where}: a block needs one of the words {', '.join(KINDS)} "
                f"after its fence, not {block.kind!r}"
            )


def test_python_is_written_as_doctests_that_pytest_collects(
    pytestconfig: pytest.Config,
) -> None:
    assert "--doctest-glob=*.md" in pytestconfig.getini("addopts")
    collected = [ROOT / path for path in pytestconfig.getini("testpaths")]
    for block in of_kind("python"):
        where = block.where
        assert ">>> " in block.text, f"{where}: write it as >>> lines, so that it runs"
        assert "+SKIP" not in block.text, f"{where}: a skipped example is not run"
        assert block.text.endswith("\n"), f"{where}: end the block in a blank line"
        assert any(block.page.is_relative_to(path) for path in collected), (
            f"{where}: the page is not among pytest's testpaths"
        )


TALKING = [page for page in PAGES if any(b.kind == "console" for b in blocks_of(page))]


def surroundings() -> dict[str, str]:
    """Return the environment of commands.

    They are not traced: tests of the command line run the same lines, in half the time.
    """
    return {
        **untraced(),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "MPLBACKEND": "Agg",
        "COLUMNS": "120",
        "NO_COLOR": "1",
    }


@pytest.fixture(scope="module")
def server() -> Iterator[CommandServer]:
    with CommandServer(surroundings()) as started:
        yield started


def outcome(server: CommandServer, command: str, folder: Path) -> tuple[int, str]:
    """Run a command, in a shell where it needs one; return exit code and output."""
    words = shlex.split(command, comments=True)
    if words[:1] == ["blowfish"] and not re.search("[<>|;&$]", " ".join(words)):
        return server.run(words[1:], folder)
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=surroundings(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.long
@pytest.mark.parametrize(
    "page", TALKING, ids=[str(page.relative_to(ROOT)) for page in TALKING]
)
def test_commands_of_a_page_run_in_order(
    page: Path, tmp_path: Path, server: CommandServer
) -> None:
    files = {file_name(block): block.text for block in blocks_of(page)}
    for name, text in files.items():
        if name:
            (tmp_path / name).write_text(text + "\n")
    for block in blocks_of(page):
        if block.kind != "console":
            continue
        steps = steps_of(block.text)
        assert steps, f"{block.where}: a console block holds lines that begin with $"
        for step in steps:
            code, output = outcome(server, step.command, tmp_path)
            told = f"{block.where}: $ {step.command}\n{output}"
            assert code == step.code, told
            if step.shown:
                assert shows(output, step.shown), f"{told}\nnot: {step.shown}"


def file_name(block: Block) -> str:
    """Return the name that the first line of a TOML block gives, as a comment."""
    first = re.match(r"# ([\w.-]+\.toml)\b", block.text)
    return first[1] if block.kind == "toml" and first else ""


@pytest.mark.parametrize("block", of_kind("toml"), ids=names(of_kind("toml")))
def test_toml_can_be_read(block: Block) -> None:
    assert tomllib.loads(block.text)


@pytest.mark.parametrize("block", of_kind("json"), ids=names(of_kind("json")))
def test_json_can_be_read(block: Block) -> None:
    assert json.loads(block.text)


def first_command(block: Block) -> str:
    """Return the first line of a block, without the comment behind it."""
    return re.sub(r"\s+#.*", "", block.text.strip().splitlines()[0])


def test_what_is_not_run_here_says_why() -> None:
    for block in of_kind("sh"):
        first = first_command(block)
        assert first in NOT_RUN_HERE, (
            f"{block.where}: use console, or list {first!r} in NOT_RUN_HERE with a "
            "reason"
        )


def test_nothing_is_listed_that_no_page_shows() -> None:
    shown = {first_command(block) for block in of_kind("sh")}
    assert sorted(set(NOT_RUN_HERE) - shown) == []


def test_a_console_block_is_read_as_written() -> None:
    text = "$ echo a \\\n  b\na b\nmore\n$ false  # exit code 1"
    assert steps_of(text) == [
        Step("echo a   b", 0, "a b"),
        Step("false  # exit code 1", 1, ""),
    ]
    assert shows("one  two\nthree 3.25 four", "one two")
    assert shows("one  two\nthree 3.25 four", "three ... four")
    assert not shows("one two", "three")
