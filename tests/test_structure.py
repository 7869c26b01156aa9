"""The tree keeps the promises of its own style."""

from __future__ import annotations

import ast
import gc
import importlib
import re
import subprocess
import sys
import tokenize
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from types import ModuleType

import pytest

from blowfish_fast.mechanisms.registry import (
    LIST_MECHANISMS,
    MECHANISMS,
    TABLE_MECHANISMS,
)

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "blowfish_fast"
SOURCES = sorted(PACKAGE.rglob("*.py"))
COMPILED = ("kernel", "exact_kernel", "helper")
NO_CODE = (
    *(tokenize.ENCODING, tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE),
    *(tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER),
)
LABELS = ("Guarantee", "Neighbours", "Sensitivity", "Error", "Complexity", "Source")


@pytest.fixture(autouse=True, scope="module")
def trees_are_kept_and_not_searched_for_garbage():
    """Millions of nodes live until the last test here; then all are let go."""
    was_enabled = gc.isenabled()
    gc.disable()
    yield
    _nodes.cache_clear()
    _tree.cache_clear()
    if was_enabled:
        gc.enable()


@cache
def _tree(path):
    return ast.parse(path.read_text())


@cache
def _nodes(path):
    return tuple(ast.walk(_tree(path)))


def test_the_root_and_every_folder_can_be_taken_in_at_a_glance():
    assert len([one for one in PACKAGE.iterdir() if one.name != "__pycache__"]) <= 18
    crowded = {
        folder: len(list(folder.glob("[a-z]*.py")))
        for folder in {path.parent for path in SOURCES}
    }
    assert [str(one) for one, count in crowded.items() if count > 18] == []


def _code_lines(path):
    """Return how many lines of a file hold code: no docstrings, comments or blanks."""
    lines = set()
    with path.open("rb") as source:
        for token in tokenize.tokenize(source.readline):
            if token.type not in NO_CODE:
                lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(_tree(path)):
        # Docstrings of modules, classes and functions, and strings below a constant.
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            lines.difference_update(range(node.lineno, node.end_lineno + 1))
    return len(lines)


def test_a_file_is_one_idea():
    # 500 lines of code, or 700 where nearly all of them are one class. Explanations
    # are as long as they need to be.
    long = []
    for folder in (PACKAGE, ROOT / "tests", ROOT / "experiments"):
        for path in folder.rglob("*.py"):
            whole = len(path.read_text().splitlines())
            if whole <= 500:
                continue
            lines = _code_lines(path)
            classes = [one for one in _tree(path).body if isinstance(one, ast.ClassDef)]
            longest = max((one.end_lineno - one.lineno for one in classes), default=0)
            if lines > (700 if longest > 0.6 * whole else 500):
                long.append(f"{path.relative_to(ROOT)}: {lines}")
    assert long == []


EXAMPLE = '''
"""A module.

Of three lines."""

# Why.
limit = 3  # here
"""Its use."""


def double(x):
    """Return
    twice."""
    return (
        2 * x
    )
'''


def test_docstrings_comments_and_blank_lines_are_no_code(tmp_path):
    path = tmp_path / "example.py"
    path.write_text(EXAMPLE)
    assert _code_lines(path) == 5


def test_no_class_name_is_used_twice():
    # An editor that is asked for a name offers one place.
    places = {}
    for path in SOURCES:
        for node in _nodes(path):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(path.stem)
    assert {name: at for name, at in places.items() if len(at) > 1} == {}


def test_no_function_takes_more_than_ten_parameters_by_place():
    wide = []
    for path in SOURCES:
        for node in _nodes(path):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                # Words that a caller must write out can be as many as are needed.
                taken = node.args.posonlyargs + node.args.args
                names = [one.arg for one in taken if one.arg not in ("self", "cls")]
                if len(names) > 10:
                    wide.append(f"{path.name}: {node.name} takes {len(names)}")
    assert wide == []


@pytest.mark.parametrize(
    "stub", sorted(PACKAGE.rglob("__init__.pyi")), ids=lambda path: path.parent.name
)
def test_stubs_say_what_the_lazy_tables_say(stub):
    module = importlib.import_module(".".join(stub.parent.relative_to(ROOT).parts))
    stated = {
        alias.asname
        for node in ast.parse(stub.read_text()).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert set(module.__all__) <= stated
    assert [name for name in sorted(stated) if not hasattr(module, name)] == []


def test_every_kernel_has_its_test():
    kernels = PACKAGE / "kernels"
    untested = [
        f"{path.parent.name}/{path.name}"
        for path in kernels.rglob("[a-z]*.py")
        if not (
            ROOT / "tests" / path.parent.relative_to(PACKAGE) / f"test_{path.name}"
        ).exists()
    ]
    assert untested == []


def test_every_kernel_file_draws_its_structure_or_works_an_example():
    plain = [
        f"{path.parent.name}/{path.name}"
        for path in (PACKAGE / "kernels").rglob("[a-z]*.py")
        if "\n    " not in (ast.get_docstring(_tree(path)) or "")
    ]
    assert plain == []


def test_kernels_copy_arrays_in_loops():
    # Numba checks the shapes of ``a[i:j] = b`` by code that spells them out in text,
    # which takes three seconds to compile, for a first release too.
    copies = []
    for path in (PACKAGE / "kernels").rglob("[a-z]*.py"):
        for function in ast.walk(_tree(path)):
            if isinstance(function, ast.FunctionDef) and any(
                isinstance(one, ast.Name) and one.id in COMPILED
                for one in function.decorator_list
            ):
                copies += [
                    f"{path.name}: {ast.unparse(one)}" for one in _copies(function)
                ]
    assert copies == []


def _copies(function):
    """Yield what a kernel assigns to slices, and to rows, but for single numbers."""
    grids = {
        ast.unparse(one.value)
        for one in ast.walk(function)
        if isinstance(one, ast.Subscript) and isinstance(one.slice, ast.Tuple)
    }
    for one in ast.walk(function):
        if not isinstance(one, ast.Assign) or isinstance(one.value, ast.Constant):
            continue
        targets = one.targets
        if isinstance(targets[0], ast.Tuple):
            targets = targets[0].elts
        for target in targets:
            if not isinstance(target, ast.Subscript):
                continue
            sliced = any(isinstance(part, ast.Slice) for part in ast.walk(target.slice))
            row = ast.unparse(target.value) in grids
            row = row and not isinstance(target.slice, ast.Tuple)
            number = isinstance(one.value, ast.Call) and (
                ast.unparse(one.value.func) in ("min", "max")
            )
            if (sliced or row) and not number:
                yield one


@pytest.mark.parametrize(
    "folder",
    ["mechanisms", "measure", "policies", "release", "workloads"],
)
def test_every_module_is_mirrored_by_a_test(folder):
    words = " ".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    for path in (PACKAGE / folder).rglob("[a-z]*.py"):
        if path.stem in ("base", "registry"):
            continue
        room = ".".join(path.parent.relative_to(PACKAGE).parts)
        mirrored = ROOT / "tests" / path.relative_to(PACKAGE).parent
        mirrored = (mirrored / f"test_{path.stem}.py").exists()
        assert mirrored or f"{room}.{path.stem}" in words or _classes_in(path, words)


def _classes_in(path, words):
    tree = _tree(path)
    public = [
        node.name
        for node in tree.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
        and not node.name.startswith("_")
    ]
    return bool(public) and all(re.search(rf"\b{name}\b", words) for name in public)


PROVED = {**MECHANISMS, **TABLE_MECHANISMS, **LIST_MECHANISMS}


@pytest.mark.parametrize("name", sorted(PROVED))
def test_mechanisms_state_the_six_labels_and_have_a_proof(name):
    mechanism = PROVED[name]
    for label in LABELS:
        assert f"{label}:" in mechanism.__doc__, f"{name} lacks {label}"
    assert ">>>" in mechanism.__doc__
    assert mechanism.name == name
    assert mechanism.__name__.lower() == name.replace("_", "")
    pages = re.findall(r"docs/proofs/(\w+\.md)", mechanism.__doc__)
    proofs = [(ROOT / "docs" / "proofs" / page).read_text() for page in pages]
    heading = re.compile(rf"^##? {mechanism.__name__}$", re.MULTILINE)
    assert any(heading.search(proof) for proof in proofs), f"{name} is not proved"


PAGES = (
    *("handle", "exact_noise", "exponential_choice", "intervals"),
    *("policies", "sensitivity", "constraints", "composition"),
)
"""What every mechanism stands on, and every change of a guarantee into another."""


def test_partitions_choices_and_conversions_have_a_proof():
    from blowfish_fast.audit.choices import all_partitions
    from blowfish_fast.measure.selectors import selections

    pages = list((ROOT / "docs" / "proofs").glob("*.md"))
    stems = {page.stem for page in pages}
    assert sorted({*PAGES} - stems) == []
    # A choice that serves one mechanism may be proved on that mechanism's page.
    text = " ".join(page.read_text() for page in pages)
    served = [
        kind.__name__ for name, kind in all_partitions().items() if name not in stems
    ]
    for name in (*served, *selections.__all__, "FirstBelow"):
        assert re.search(rf"`[a-z_.]+\.{name}\b", text), name


def test_proofs_name_what_exists():
    defined = {path.stem for path in SOURCES}
    for path in SOURCES:
        for node in _nodes(path):
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                defined.add(node.name)
            elif isinstance(node, ast.AnnAssign | ast.Assign):
                targets = getattr(node, "targets", None) or [node.target]
                for target in targets:
                    name = getattr(target, "id", getattr(target, "attr", ""))
                    defined.add(name)
    for page in (ROOT / "docs" / "proofs").glob("*.md"):
        text = page.read_text()
        dotted = re.findall(r"`([A-Za-z_]\w*(?:\.\w+)+)`", text)
        names = [one for one in dotted if not one.endswith((".py", ".md", ".json"))]
        for name in names:
            assert name.split(".")[-1] in defined, f"{page.name} names {name}"
        plain = re.findall(r"`([A-Za-z_]\w+)`", text)
        if page.stem == "index":
            continue
        assert len(names) + len(defined & set(plain)) > 1, f"{page.name} names nothing"
        for path in re.findall(r"`((?:tests|docs|blowfish_fast)/[\w./*]+)`", text):
            assert list(ROOT.glob(path)), f"{page.name} names {path}"
        for page_named in re.findall(r"\]\((\w+\.md)\)", text):
            assert (page.parent / page_named).exists(), f"{page.name}: {page_named}"


OBJECTS = {"bf", "handle", "policy", "private", "release", "LEDGER"}
"""Words of proofs for an object at hand, where no file or class is meant."""


def test_proofs_name_files_and_classes_that_hold_what_they_name():
    # `order.cell_order` is no place to look it up once the file has another name.
    files, classes = _definitions()
    rooms = {}
    for folder in {path.parent for path in SOURCES}:
        dotted = ".".join(folder.relative_to(ROOT).parts)
        # Kernels and releases both have a folder about sampling.
        rooms.setdefault(folder.name, []).append(importlib.import_module(dotted))
        files[folder.name] |= {path.stem for path in folder.rglob("*.py")}
    astray = []
    for page in sorted((ROOT / "docs" / "proofs").glob("*.md")):
        dotted = re.findall(r"`([A-Za-z_]\w*(?:\.\w+)+)`", page.read_text())
        for owner, name in {tuple(word.split(".")[-2:]) for word in dotted}:
            is_file_name = name in ("py", "md", "json")
            held = _held_by(classes, owner) | files.get(owner, set())
            offered = any(hasattr(room, name) for room in rooms.get(owner, ()))
            there = name in held or offered
            if not (is_file_name or owner in OBJECTS or there):
                astray.append(f"{page.name}: {owner}.{name}")
        private = {*re.findall(r"`(_[a-z]\w+)`", page.read_text())}
        held = set().union(*files.values(), *(inside for _, inside in classes.values()))
        astray += [f"{page.name}: {name}" for name in private - held]
    assert sorted(astray) == []


def _definitions():
    """Return names by the file that defines them, and each class's bases and names."""
    files, classes = {}, {}
    for path in SOURCES:
        stem = path.parent.name if path.stem == "__init__" else path.stem
        names = files.setdefault(stem, set())
        for node in _tree(path).body:
            names.update(_names_bound_by(node))
            if isinstance(node, ast.ClassDef):
                inside = {
                    name for part in ast.walk(node) for name in _names_bound_by(part)
                }
                bases = [ast.unparse(base).split("[")[0] for base in node.bases]
                classes[node.name] = bases, inside
    return files, classes


def _names_bound_by(node):
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return [node.name]
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = getattr(node, "targets", None) or [node.target]
        # `self.low, self.high = ...` binds both, and names `self` besides.
        parts = [part for target in targets for part in ast.walk(target)]
        return [getattr(part, "id", getattr(part, "attr", "")) for part in parts]
    return []


def _held_by(classes, kind):
    """Return what a class and those above it define; of other packages' none."""
    bases, names = classes.get(kind, ([], set()))
    return names.union(*(_held_by(classes, base.split(".")[-1]) for base in bases))


def _imported(path):
    """Yield what a module imports: inside functions and for annotations too."""
    package = ["blowfish_fast", *path.relative_to(PACKAGE).parts[:-1]]
    for node in _nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            yield from (f"{base}.{alias.name}" for alias in node.names)
            yield base


def test_no_modules_import_each_other():
    known = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): path
        for path in SOURCES
        if path.stem != "__init__"
    }
    needs = {
        name: {one for one in _imported(path) if one in known}
        for name, path in known.items()
    }
    # A circle raises CycleError, which names it.
    assert set(TopologicalSorter(needs).static_order()) == set(known)


def test_no_folders_import_each_other():
    # At every depth: where files of one folder need a sister folder, or a file beside
    # it, nothing there may need them back.
    needs = {}
    for path in SOURCES:
        name = path.relative_to(ROOT).with_suffix("").parts
        for one in _imported(path):
            other = tuple(one.split("."))
            shared = 0
            while shared < min(len(name), len(other)) and name[shared] == other[shared]:
                shared += 1
            if shared and shared < len(name) and shared < len(other):
                here, there = name[: shared + 1], other[: shared + 1]
                if "__init__" not in here and _is_module(there):
                    needs.setdefault(here, set()).add(there)
    assert set(needs) <= set(TopologicalSorter(needs).static_order())


def _is_module(name):
    place = ROOT.joinpath(*name)
    return place.is_dir() or place.with_suffix(".py").exists()


READERS = {"counts", "_counts", "_filled_cells"}
"""Attributes that true counts are read by."""


def test_recipes_never_name_the_counts():
    for path in (PACKAGE / "mechanisms").rglob("[a-z]*.py"):
        named = {node.attr for node in _nodes(path) if isinstance(node, ast.Attribute)}
        doors = {"base": READERS}
        # Points of k-means are made into counts where `base` reads a histogram.
        doors["kmeans"] = {"_counts"}
        # A list of heavy cells is drawn from the filled ones, whatever the domain.
        doors["sparse"] = {"_filled_cells"}
        # No recipe: it labels counts that audits made up.
        doors["example_data"] = {"counts"}
        assert named & READERS <= doors.get(path.stem, set()), path.stem


def test_importing_the_package_loads_numpy_and_nothing_heavier():
    code = (
        "import sys, blowfish_fast; "
        "print([m for m in ('numba','scipy','matplotlib','cryptography','typer',"
        "'pandas','rustworkx','ibis') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_no_public_function_carries_the_name_of_a_module_beside_it():
    found = [
        f"{path.name}: {node.name} is also a module"
        for path in SOURCES
        for node in _tree(path).body
        if isinstance(node, ast.FunctionDef)
        and path.with_name(f"{node.name}.py").exists()
    ]
    assert found == []


def test_the_map_of_the_readme_is_true():
    for path in re.findall(
        r"`((?:blowfish_fast|docs|tests|examples)/[\w./]+)`",
        (ROOT / "README.md").read_text(),
    ):
        assert (ROOT / path).exists(), path


def test_every_lazy_name_can_be_reached():
    import blowfish_fast as bf

    for name in bf.__all__:
        assert getattr(bf, name) is not None
    for name in bf.kernels.__all__:
        assert callable(getattr(bf.kernels, name))
    with pytest.raises(AttributeError):
        _ = bf.nothing_of_the_kind
    with pytest.raises(AttributeError):
        _ = bf.kernels.nothing_of_the_kind
    assert "Dawa" in dir(bf)
    assert "greedy_scaling" in dir(bf.kernels)
    assert re.match(r"\d+\.\d+", bf.__version__)


def test_completion_offers_public_names_only():
    import blowfish_fast as bf

    for name in bf.__all__:
        module = getattr(bf, name)
        if isinstance(module, ModuleType):
            assert dir(module) == sorted(module.__all__), name


SAY_NOTHING = {"one", "found", "known", "kept", "made", "given"}
"""Words that say how something was come by, and not what it is: `query`, `axes`."""


def test_names_say_what_a_thing_is():
    # Fields and parameters of public names are words of their interfaces. A kernel's
    # file that changes is compiled anew by everybody, so the few names in kernels wait
    # until their files change for another reason.
    mute = [
        f"{path.relative_to(PACKAGE)}:{line} {name}"
        for path in SOURCES
        if "kernels" not in path.parts
        for name, line in _bound_names(_tree(path), frozenset())
        if name in SAY_NOTHING
    ]
    assert mute == []


def test_bound_names_are_found_wherever_they_are_bound():
    text = """
def public(given):
    given = list(given)
    def _private(known): return [one for one, (kept, *made) in known]
    for found in given: (lambda one: one)(found)
    with open(found) as known: pass
class Field:
    found: int
"""
    names = [name for name, _ in _bound_names(ast.parse(text), frozenset())]
    said = [name for name in names if name in SAY_NOTHING]
    assert said == ["known", "one", "kept", "made", "found", "one", "known"]


def _bound_names(node, interface):
    """Yield what is bound below a node, with its line, but for words of interfaces."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        own = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        own += [word for word in (node.args.vararg, node.args.kwarg) if word]
        name = getattr(node, "name", "_lambda")
        if name == "__init__" or not name.startswith("_"):
            interface = interface | {word.arg for word in own}
        else:
            yield from ((word.arg, node.lineno) for word in own)
    is_bound = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    if is_bound and node.id not in interface:
        yield node.id, node.lineno
    is_class = isinstance(node, ast.ClassDef)
    for inner in ast.iter_child_nodes(node):
        if not (is_class and isinstance(inner, ast.AnnAssign)):
            yield from _bound_names(inner, interface)
