"""All experiments by name: every module here that has a tuple ``EXPERIMENTS``.

Nothing is imported before the first question, and nothing is listed by hand.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
import re
from functools import cache

from blowfish_fast.advice.experiments.experiment import Experiment
from blowfish_fast.errors import InputError

ALL = "all"


@cache
def all_experiments() -> dict[str, Experiment]:
    """Return every experiment by its name, ``fig9`` before ``fig10``.

    Examples
    --------
    >>> [name for name in all_experiments() if name.startswith("dawa-table")]
    ['dawa-table1', 'dawa-table2']
    """
    package = __name__.rpartition(".")[0]
    folder = importlib.import_module(package).__path__
    found: dict[str, Experiment] = {}
    for module in pkgutil.iter_modules(folder):
        listed = getattr(
            importlib.import_module(f"{package}.{module.name}"), "EXPERIMENTS", ()
        )
        for experiment in listed:
            assert experiment.name not in found, f"{experiment.name} is there twice"
            found[experiment.name] = experiment
    return {name: found[name] for name in sorted(found, key=_in_order)}


def experiment_named(name: str) -> Experiment:
    """Return one experiment, or refuse with the names there are.

    Examples
    --------
    >>> experiment_named("dawa-table2").title
    'DAWA (Li, Hay, Miklau, Wang 2014), Table 2'
    """
    found = all_experiments()
    if name in found:
        return found[name]
    close = difflib.get_close_matches(name, found, n=1)
    hint = f" Did you mean {close[0]}?" if close else ""
    raise InputError(
        f"there is no experiment {name!r}.{hint} Experiments: "
        f"{', '.join([*found, ALL])}"
    )


def _in_order(name: str) -> list[tuple[int, str | int]]:
    """Order words as words and numbers as numbers."""
    return [
        (0, int(part)) if part.isdigit() else (1, part)
        for part in re.split(r"(\d+)", name)
        if part
    ]
