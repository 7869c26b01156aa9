"""Switches are off until someone asks: `vouched`, `overwrite`, `--json` and the others.

A default is worked out where a function is made, so that tests which always state the
argument would not notice another one.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import blowfish_fast

ON = {
    "advice.calibration.Calibration.least(checked)",
    "advice.experiments.runner.run_experiment(figure)",
    "apps.cli.files.data_source.open_source(named)",
    "apps.cli.files.outputs.check_file(overwrite)",
    "apps.cli.release_job.check_complete(with_data)",
    "apps.explorer.planning.Planner.effort(limited)",
    "apps.explorer.planning.Planner.plan(limited)",
    "apps.explorer.planning.Planner.shape(limited)",
    "apps.explorer.planning.Shape.least(checked)",
    "apps.interop.estimator.Estimator.get_params(deep)",
    "apps.server.workspace.Workspace.close_table(closed)",
    "kernels.capi.c_entries.compile_entry(keep)",
    "kernels.tree_scaling.greedy_weights.greedy_scaling(decay)",
    "kernels.tree_scaling.greedy_weights.greedy_scaling_fractions(decay)",
    "kernels.tree_scaling.greedy_weights.greedy_scaling_implicit(decay)",
    "kernels.tree_scaling.greedy_weights.greedy_scaling_pieces(decay)",
    "kernels.tree_scaling.weight_sweeps.refine_scaling(safeguard)",
    "measure.sensitivity.policy.Sensitivity.__new__(exact)",
    "measure.strategies.trees.tree_weights.tuned_tree(sweeps)",
    "measure.unseen.run_unseen(secure)",
    "mechanisms.dawa.Dawa.__init__(sweeps)",
    "mechanisms.dawa.chosen_map(test)",
    "plotting.histograms.histogram(buckets)",
}
"""None of these weakens a promise or replaces a file of the user."""


def modules() -> Iterator[ModuleType]:
    found = pkgutil.walk_packages(blowfish_fast.__path__, "blowfish_fast.")
    for name in sorted(one.name for one in found):
        if not name.endswith("__main__"):
            yield importlib.import_module(name)


def functions(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Yield what a module defines and can call, methods too."""
    for name, one in vars(module).items():
        if getattr(one, "__module__", None) != module.__name__:
            continue
        if not inspect.isclass(one):
            yield name, one
            continue
        for part, method in vars(one).items():
            plain = getattr(method, "__func__", method)
            if inspect.isfunction(plain):
                yield f"{name}.{part}", plain


def switches() -> dict[str, bool]:
    found = {}
    for module in modules():
        room = module.__name__.removeprefix("blowfish_fast.")
        for name, one in functions(module):
            try:
                stated = inspect.signature(one).parameters.values()
            except (TypeError, ValueError):
                continue
            for part in stated:
                if isinstance(part.default, bool):
                    found[f"{room}.{name}({part.name})"] = part.default
    return found


def test_switches_are_off_unless_they_are_listed_here() -> None:
    found = switches()
    assert {name for name, on in found.items() if on} == ON
    # The ones that matter most are among those that were looked at.
    assert found["accounting.ledger.Ledger.release(vouched)"] is False
    assert found["apps.cli.commands.release.run_release(as_json)"] is False
