"""Speed, memory, start-up and accuracy of blowfish_fast, for asv.

kernels         kernels over plain arrays, on hard and easy data     CPU time
workloads       exact answers, projection on buckets                 CPU time
policies        distances, quotients, the kernels below them         CPU time
transformed     quotients, choice of a strategy, policy graphs       CPU time
mechanisms      whole releases, and the registry one by one          wall time
memory          peak of a release, and what it adds to a small one
cold_start      import and first release in a new process
accuracy        error on generated data: a speed-up that costs it must show

asv finds benchmarks by importing these modules beside the package of the commit that
it measures, and gives up where one cannot be imported. An older commit lacks what is
newer, so while asv looks, a module whose names the commit does not have stands empty,
and the others are measured.
"""

import importlib
import pkgutil
import sys
import types

LEFT_OUT: dict[str, str] = {}
"""Modules that stand empty, and what they lack."""


def leave_out_what_is_missing() -> None:
    """Put an empty module in the place of each that cannot be imported."""
    for found in pkgutil.iter_modules(__path__, f"{__name__}."):
        try:
            importlib.import_module(found.name)
        except (ImportError, AttributeError) as problem:
            LEFT_OUT[found.name] = str(problem)
            sys.modules[found.name] = types.ModuleType(found.name)
            sys.stderr.write(f"{found.name} is left out: {problem}\n")


if sys.argv[1:2] == ["discover"]:
    leave_out_what_is_missing()
