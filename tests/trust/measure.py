"""Measure what the table of docs/trust.md promises, and note it in docs/trust.json.

python -m tests.trust.measure                      everything here, about an hour
python -m tests.trust.measure kills coverage       these alone
python -m tests.trust.measure truth --number 5     a small form, printed and not noted
python -m tests.trust.measure truth --data FOLDER  on the sets of a folder
python -m tests.trust.measure --audit audit.json   rows of an audit that is finished
blowfish audit --record docs/trust.json            audit, power, grey box, rho, choices
python -m tests.trust.table --write                the table from the file
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

from blowfish_fast.audit import LONG, QUICK, Report
from blowfish_fast.audit.plan import tasks
from blowfish_fast.audit.report import note_figures
from blowfish_fast.audit.verdicts import Verdict, rho_verdicts
from blowfish_fast.audit.walk import examine
from blowfish_fast.errors import NoiseOnlyWarning
from blowfish_fast.mechanisms.registry import MECHANISMS
from experiments.answer_coverage import answer_coverage
from experiments.interval_coverage import certificate_report
from experiments.wide_coverage import CONFIDENCE, ROOM, wide_coverage

from . import bad_inputs, coverage, ledger_stress, populations

ROOT = Path(__file__).parents[2]
FIGURES = ROOT / "docs" / "trust.json"
RELEASES, FIRST = 10_000, 1_000
TRUE_RELEASES, CERTIFICATES = 200, 10_000
GROUP_RELEASES = 100
DRAWS = 10_000
WIDE_RELEASES = 40
KILLS, QUESTIONS = 1000, 4_000
CHARGES = 100_000
IMPORT_SECONDS, CALL_SECONDS = 0.3, 2.0


def measure_coverage(releases=RELEASES, first=FIRST):
    """Count misses of intervals; where the first releases hardly miss, they will do."""
    found, many = {}, []
    for name in sorted(MECHANISMS):
        offered = coverage.offered(name)
        if offered is None:
            continue
        misses = coverage.missed(*offered, first)
        if misses.max() > coverage.BETA / 5:
            many.append(name)
            rest = coverage.missed(*offered, releases - first, seed=first)
            misses = (first * misses + (releases - first) * rest) / releases
        found[name] = float(misses.max())
    worst = max(found, key=found.get)
    limit = coverage.allowed(releases)
    return {
        "goal": "misses of 95 % noise intervals at most beta + 3 sigma",
        "measured": f"{releases:,} releases of each of {len(many)} mechanisms, "
        f"{first:,} of {len(found) - len(many)} that hardly miss: at most "
        f"{found[worst]:.4f} ({worst}), allowed {limit:.4f}",
        "passed": found[worst] <= limit,
        "misses": found,
        "with_all_releases": many,
    }


def measure_truth(releases=TRUE_RELEASES, data=None, names=None):
    """Count misses of the truth by mechanism, currency and number of axes."""
    said, missed, cases = {}, {}, 0
    for case in coverage.truth_cases(data, names):
        granted, share = coverage.untrue(case, releases)
        unit = "rho" if case.mechanism.budget.power == 2 else "epsilon"
        group = f"{case.name}, {unit}, {case.counts.ndim}-D"
        cases += granted > 0
        said[group] = said.get(group, 0) + granted
        missed[group] = missed.get(group, 0.0) + granted * share
    shares = {one: missed[one] / said[one] for one in said if said[one]}
    worst = max(shares, key=lambda one: shares[one] - coverage.allowed(said[one]))
    mechanisms = {one.partition(",")[0] for one in shares}
    return {
        "goal": 'misses of 95 % intervals that say "truth" at most beta + 3 sigma, '
        "over all mechanisms that grant it, in epsilon and in rho",
        "measured": f"{sum(said.values()):,} releases of {len(mechanisms)} mechanisms "
        f"on {cases} {'given' if data else 'generated'} lines and maps: at most "
        f"{shares[worst]:.4f} ({worst}), allowed {coverage.allowed(said[worst]):.4f}",
        "passed": all(shares[one] <= coverage.allowed(said[one]) for one in shares),
        "misses": shares,
    }


def measure_groups(releases=GROUP_RELEASES, names=None):
    """Count misses of counts, sums, means, variances and medians of groups."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoiseOnlyWarning)
        rows = [*answer_coverage(releases, names, certified=False)]
        rows = [one for one in rows if one.said]
    found = {
        f"{one.measure}, {one.mechanism}": (1.0 - one.held, round(one.said * releases))
        for one in rows
    }
    excess = {name: miss - coverage.allowed(n) for name, (miss, n) in found.items()}
    worst = max(excess, key=excess.get)
    miss, said = found[worst]
    return {
        "goal": 'misses of 95 % intervals that say "truth" of counts, shares, sums, '
        "means, variances and medians of groups at most beta + 3 sigma",
        "measured": f"{sum(n for _, n in found.values()):,} answers by group of "
        f"{len({one.mechanism for one in rows})} mechanisms, on records: at most "
        f"{miss:.4f} ({worst}), allowed {coverage.allowed(said):.4f}",
        "passed": max(excess.values()) <= 0.0,
        "misses": {name: miss for name, (miss, _) in found.items()},
    }


def measure_wide(releases=WIDE_RELEASES):
    """Count misses of lists, ranges and maps of domains that nobody could list."""
    rows = wide_coverage(releases)
    worst = min(rows, key=lambda one: one.held + ROOM * one.error)
    limit = 1.0 - CONFIDENCE + ROOM * worst.error
    return {
        "goal": "misses of 95 % intervals of lists, ranges and maps of wide domains at "
        "most beta + 3 sigma, in epsilon and in rho",
        "measured": f"{sum(one.intervals for one in rows):,} intervals of {len(rows)} "
        f"kinds: at most {1.0 - worst.held:.4f} ({worst.release}, {worst.asked}, "
        f"{worst.budget}), allowed {limit:.4f}",
        "passed": all(one.enough for one in rows),
        "misses": {f"{a}, {b}, {c}": 1.0 - held for a, b, c, _, held, _ in rows},
    }


def measure_population(draws=DRAWS, names=None):
    """Count misses of intervals of the population, of every design of a sample."""
    misses = populations.population_misses(draws, names)
    excess = {name: miss - coverage.allowed(n) for name, (miss, n) in misses.items()}
    designs = [name for name in misses if ", cells of " not in name]
    worst = max(designs, key=lambda name: misses[name][0])
    nearest = max(excess, key=excess.get)
    miss, number = misses[nearest]
    return {
        "goal": 'misses of 95 % intervals that say "population" at most beta + 3 '
        "sigma, over the draw of the sample and the noise, of every design and of "
        "cells of every size",
        "measured": f"{draws:,} draws of each of {len(designs)} designs and measures: "
        f"at most {misses[worst][0]:.4f} ({worst}), allowed "
        f"{coverage.allowed(misses[worst][1]):.4f}; nearest to its limit {miss:.4f} "
        f"({nearest}), allowed {coverage.allowed(number):.4f}",
        "passed": max(excess.values()) <= 0.0,
        "misses": {name: miss for name, (miss, _) in misses.items()},
    }


def measure_certificates(certificates=CERTIFICATES):
    """Count false claims of every kind of certificate."""
    found = {
        kind: (share, limit) for kind, share, limit in certificate_report(certificates)
    }
    told = ", ".join(f"{kind} {share:.4f}" for kind, (share, _) in found.items())
    limit = max(limit for _, limit in found.values())
    return {
        "goal": "false certificates at most miss + 3 sigma, of every kind",
        "measured": f"{certificates:,} of each kind at miss 0.05: {told}, allowed "
        f"{limit:.4f}",
        "passed": all(share <= limit for share, limit in found.values()),
    }


def measure_rho(noise=LONG.noise, names=None):
    """Price and draw every mechanism paid in rho, as the long audit does."""
    plan = LONG._replace(noise=noise)
    stops = [one for one in tasks(plan, names) if one.kind == "mechanism"]
    found = [verdict for stop in stops for verdict in rho_verdicts(stop, plan)]
    return Report(tuple(found), plan, "long", 0.0, "").figures()["rho"]


def measure_selections(batch=LONG.batch, names=None):
    """Draw from every selector on neighbours, and plant an excess in each."""
    plan = LONG._replace(batch=batch)
    found = [
        verdict
        for stop in tasks(plan)
        if stop.kind in ("selector", "selector power")
        and stop.family in plan.thorough
        and (names is None or stop.name in names)
        for verdict in examine(stop, plan)
    ]
    return Report(tuple(found), plan, "long", 0.0, "").figures()["selections"]


def figures_of_audit(path):
    """Return the rows of the table that a finished audit fills."""
    found = json.loads(path.read_text())
    plan = LONG if found["form"] == "long" else QUICK
    plan = plan._replace(batch=found["samples"]["choices_in_batches"])
    verdicts = tuple(
        Verdict(**{**one, "found": math.inf if one["found"] is None else one["found"]})
        for one in found["verdicts"]
    )
    report = Report(
        verdicts, plan, *(found[key] for key in ("form", "seconds", "version"))
    )
    return report.figures()


def measure_kills(number=KILLS, questions=QUESTIONS):
    """Kill a worker again and again."""
    with tempfile.TemporaryDirectory() as folder:
        found = ledger_stress.kills(Path(folder), number, questions)
    wrong = found["uncharged"] + found["lost"] + found["changed"]
    return {
        "goal": "1,000 kills: nothing released uncharged, lost or changed",
        "measured": f"{found['kills']:,} kills, {found['between']} of them between "
        f"charge and answer: {wrong} wrong",
        "passed": found["kills"] >= number and wrong == 0 and found["between"] > 0,
        **found,
    }


def measure_concurrency(charges=CHARGES):
    """Let many ask at once; then charge many times."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paid, releases, spent = ledger_stress.analysts(folder)
        disk, rate = ledger_stress.both_rates(folder)
        first, last = ledger_stress.many_charges(folder, charges)
    share, growth = rate / disk, last / first
    # Charges cannot outrun the disk: then the two rates were not taken alike.
    settled = 0.4 <= share <= 1.1
    return {
        "goal": "32 analysts never overspend and charge at 0.4 or more of the rate at "
        "which the disk commits one-row SQLite transactions; of 100,000 charges the "
        "last take at most twice the first",
        "measured": f"{paid} of 400 releases paid; {rate:,.0f} charges/s, {share:.2f} "
        f"of the rate ({releases:,.0f} whole releases/s); after {charges:,} charges "
        f"{growth:.2f} times as slow",
        "passed": paid == 400 and spent == 4 and settled and growth <= 2,
        "releases_per_second": releases,
        "charges_per_second": rate,
        "transactions_per_second": disk,
        "growth": growth,
    }


def measure_inputs():
    """Offer what is no histogram."""
    found = list(bad_inputs.outcomes())
    odd = [
        one
        for one in found
        if one[2] != ("accepted" if one[0] in bad_inputs.ACCEPTED else "refused")
    ]
    return {
        "goal": "NaN, infinities, negatives, > 2^53, empty, out of domain, wrong "
        "shapes: the documented outcome, nothing charged where refused",
        "measured": f"{len(found):,} cases ({len(bad_inputs.COUNTS)} kinds of counts "
        f"in every mechanism, {len(bad_inputs.RECORDS)} of records): "
        f"{len(odd)} otherwise",
        "passed": not odd,
        "otherwise": [list(one) for one in odd],
    }


def measure_start_up(tries=5):
    """Import, and release once, in fresh processes with compiled kernels."""
    imported = "import blowfish_fast"
    called = (
        "import blowfish_fast as bf; line = bf.Domain(1024); "
        "policy = bf.policies.Full(line); "
        "asked = bf.workloads.Ranges.random(line, 100, rng=1); "
        "bf.Dawa(policy, asked, epsilon=1).release([1] * 1024)"
    )
    once = [_cpu_seconds(called) for _ in range(tries + 1)]
    first, call = min(_cpu_seconds(imported) for _ in range(tries)), min(once)
    return {
        "goal": "import at most 0.3 s of CPU, first release at most 2 s with compiled "
        "kernels",
        "measured": f"import {first:.2f} s, import and first release {call:.2f} s",
        "passed": first <= IMPORT_SECONDS and call <= CALL_SECONDS,
    }


def _cpu_seconds(code):
    timed = f"import time; s = time.process_time(); {code}; " + (
        "print(time.process_time() - s)"
    )
    done = subprocess.run(
        [sys.executable, "-c", timed],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    return float(done.stdout)


def measure_mutants():
    """Plant every bug and count those that the audit catches by name."""
    from tests.privacy import mutants_beyond_noise, mutants_of_baselines  # noqa: F401
    from tests.privacy.mutants import MUTANTS

    def caught(mutant, look):
        with mutant.plant():
            failed = [one for one in look() if not one.passed]
        return mutant.check in {one.check for one in failed} and {
            one.subject for one in failed
        } == {mutant.subject}

    found = {name: caught(one, one.verdicts) for name, one in MUTANTS.items()}
    for name, one in mutants_of_baselines.STOPS.items():
        found[name] = caught(one, lambda one=one: mutants_of_baselines.verdicts(one))
    missed = sorted(name for name, seen in found.items() if not seen)
    return {
        "goal": "at least 16 planted bugs, all caught, the mechanism named",
        "measured": f"{len(found) - len(missed)} of {len(found)} caught",
        "passed": not missed and len(found) >= 16,
        "missed": missed,
    }


def measure_power():
    """Plant an excess of 5 % in mechanisms and selectors, as the long audit does."""
    planted = [one for one in tasks(LONG) if one.kind in ("power", "selector power")]
    found = [verdict for one in planted for verdict in examine(one, LONG)]
    report = Report(tuple(found), LONG, "long", 0.0, "")
    return report.figures()["power"]


MEASURES = {
    "power": measure_power,
    "mutants": measure_mutants,
    "coverage": measure_coverage,
    "truth": measure_truth,
    "groups": measure_groups,
    "wide": measure_wide,
    "population": measure_population,
    "certificates": measure_certificates,
    "rho": measure_rho,
    "selections": measure_selections,
    "kills": measure_kills,
    "concurrency": measure_concurrency,
    "inputs": measure_inputs,
    "start_up": measure_start_up,
}


def main(words):
    """Measure what is named, or everything; return whether all goals were met."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(MEASURES))
    parser.add_argument("--number", type=int, help="so many only, and nothing noted")
    parser.add_argument("--data", type=Path, help="a folder with 1d/*.npy and 2d/*.npy")
    parser.add_argument("--audit", type=Path, help="audit.json of a finished audit")
    parser.add_argument("--figures", type=Path, default=FIGURES)
    asked = parser.parse_args(words)
    passed = True
    if asked.audit is not None:
        measures = {
            name: lambda entry=entry: entry
            for name, entry in figures_of_audit(asked.audit).items()
        }
    else:
        measures = {name: MEASURES[name] for name in asked.names or MEASURES}
    for name, measure in measures.items():
        if name == "truth" and asked.data is not None:
            measure = functools.partial(measure, data=asked.data)
        entry = measure() if asked.number is None else measure(asked.number)
        if asked.number is None:
            note_figures(asked.figures, {name: entry})
        sys.stdout.write(f"{name}: {entry['measured']}\n")
        sys.stdout.flush()
        passed = passed and entry["passed"]
    return passed


if __name__ == "__main__":
    sys.exit(not main(sys.argv[1:]))
