"""From any noise scale in the code to its lemma and back in one step.

code: "Return the heaviest pair of nodes: Lemma HI4."   <->   page: "**Lemma HI4. ..."
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "blowfish_fast"
PAGES = sorted((ROOT / "docs" / "proofs").glob("*.md"))
STATED = re.compile(r"^(?:\*{1,2}Lemma ([A-Z]+\d+)\b|#+ .*\(Lemma ([A-Z]+\d+)\)$)")
NAMED = re.compile(r"\bLemmas? ([A-Z]+\d+(?:(?:, | and | to )[A-Z]+\d+)*)")
SCALES = ("worst_edge", "scales", "noise", "rate", "sensitivity", "select")
"""Functions of the private border that set a noise scale, or what it is made from."""
ROOMS = ("measure/strategies", "measure/selectors", "measure/sensitivity")
FORWARDED = {
    ("measure/strategies/tables/residuals.py", "TableNoise"): "charged for as tables",
    ("measure/selectors/partitions/base.py", "Partition"): "each partition says it",
    ("measure/selectors/selections.py", "NoisyComparison"): "each comparison says it",
}
"""Classes that set no scale of their own, and who does."""


def stated():
    """Return the pages on which each lemma is stated."""
    found = {}
    for page in PAGES:
        for line in page.read_text().splitlines():
            match = STATED.match(line)
            if match:
                found.setdefault(match[1] or match[2], []).append(page.stem)
    return found


def named(path):
    text = " ".join(path.read_text().split())
    return [
        one for group in NAMED.findall(text) for one in re.findall(r"[A-Z]+\d+", group)
    ]


def test_every_lemma_has_one_place_and_every_page_its_own_letters():
    lemmas = stated()
    assert {one: pages for one, pages in lemmas.items() if len(pages) > 1} == {}
    letters = {(re.match("[A-Z]+", one)[0], at) for one, (at,) in lemmas.items()}
    shared = Counter(word for word, _ in letters)
    assert {word: count for word, count in shared.items() if count > 1} == {}
    without = {page.stem for page in PAGES} - {pages[0] for pages in lemmas.values()}
    assert without == {"index"}


def test_code_and_pages_name_lemmas_that_exist():
    lemmas = stated()
    sources = [*sorted(PACKAGE.rglob("*.py")), *sorted((ROOT / "docs").rglob("*.md"))]
    unknown = {
        str(path.relative_to(ROOT)): missing
        for path in sources
        if (missing := [one for one in named(path) if one not in lemmas])
    }
    assert unknown == {}


def test_every_noise_scale_names_its_lemma():
    # In the function that sets it, or in the class whose other methods it calls.
    lemmas, silent = stated(), []
    for room in ROOMS:
        for path in sorted((PACKAGE / room).rglob("[a-z]*.py")):
            text = path.read_text()
            lines = text.splitlines()
            for node in ast.parse(text).body:
                sets = {
                    one.name
                    for one in ast.walk(node)
                    if isinstance(one, ast.FunctionDef) and one.name in SCALES
                }
                source = "\n".join(lines[node.lineno - 1 : node.end_lineno])
                said = re.findall(r"\b[A-Z]+\d+\b", source)
                if sets and not lemmas.keys() & set(said):
                    silent.append((str(path.relative_to(PACKAGE)), node.name))
    assert sorted(silent) == sorted(FORWARDED)


def test_every_family_of_noise_is_reached_from_the_code():
    # What draws, chooses, composes or converts names the page that proves it.
    used = {one for path in PACKAGE.rglob("*.py") for one in named(path)}
    letters = {re.match("[A-Z]+", one)[0] for one in used}
    assert {"EN", "EC", "LA", "HI", "OR", "OH", "SE", "ZC", "CO", "LC", "DT"} <= letters


def test_the_page_of_a_lemma_names_the_functions_that_name_it():
    lemmas, text = stated(), {page.stem: page.read_text() for page in PAGES}
    silent = set()
    sources = (path.read_text() for path in sorted(PACKAGE.rglob("*.py")))
    # Parsing the rest of the package would take most of this test.
    for source in (source for source in sources if "Lemma" in source):
        for node in ast.walk(ast.parse(source)):
            if not isinstance(node, ast.FunctionDef):
                continue
            words = " ".join((ast.get_docstring(node) or "").split())
            for lemma in re.findall(r"Lemma ([A-Z]+\d+)", words):
                ticked = rf"`[^`\n]*\b{node.name}\b[^`\n]*`"
                if not re.search(ticked, text[lemmas[lemma][0]]):
                    silent.add((lemma, node.name))
    assert silent == set()
