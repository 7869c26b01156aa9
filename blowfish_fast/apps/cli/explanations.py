"""What a policy, a price and a mechanism mean, in sentences for a curator."""

from __future__ import annotations

import inspect
import math
from collections import Counter
from contextlib import suppress
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from blowfish_fast import policies
from blowfish_fast.advice.posterior_belief import most_steps, risk
from blowfish_fast.errors import BlowfishError, InputError, nearest
from blowfish_fast.measure.budgets import Budget, left_out
from blowfish_fast.measure.strategies import strategy_choice
from blowfish_fast.mechanisms.base import Mechanism
from blowfish_fast.mechanisms.registry import (
    OWN,
    RHO_MECHANISMS,
    find_mechanism,
    is_outside,
)
from blowfish_fast.policies import Policy
from blowfish_fast.release.chosen_release import ChosenTablesRelease
from blowfish_fast.release.file import Release
from blowfish_fast.release.guarantee import recipe_name
from blowfish_fast.release.series_release import SeriesRelease
from blowfish_fast.release.table_errors import TableErrors
from blowfish_fast.release.tables_release import TablesRelease
from blowfish_fast.release.wide.look_release import LookRelease
from blowfish_fast.release.wide.ranges_release import RangesRelease
from blowfish_fast.release.wide.sparse_release import SparseRelease
from blowfish_fast.workloads import Identity

from .release_questions import measures_answers

LABELS = {
    "Guarantee": "What it promises",
    "Neighbours": "Between which databases",
    "Sensitivity": "What the noise must cover",
    "Error": "How far off it is",
    "Complexity": "How long it takes",
    "Source": "Where it comes from",
}
"""Labels in the docstring of a mechanism, and what each tells."""
SECURE = "Its noise came from the system's secure generator."
SEEDED = "Its noise was seeded: it is an experiment, and protects nobody."
OUTSIDE = "It was defined outside blowfish_fast, which has not proved its privacy"
PRIORS = ("0.01", "0.1", "0.5")
TENTH = 0.1
"""The belief that is told in numbers of people, one of `PRIORS`."""
LARGEST_FACTOR = 1e6
"""Beyond it a factor says nothing that a number would make plainer."""
MEANING = (
    "Epsilon-Blowfish means: whatever is published is at most e^epsilon times as "
    "likely from one database as from a neighbouring one, and the policy says which "
    "databases are neighbours."
)

OTHER_NAMES = {"queries": "laplace", "ordered_fitted": "ordered"}
"""Names in tables that stand for a mechanism used in a special way."""

MOST_INTERVALS = 2**18
"""Cells up to which the intervals of all are looked at."""


class Section(NamedTuple):
    """A heading, its sentences, and a small table.

    Attributes
    ----------
    heading : str
        The heading.
    sentences : list of str
        The text below it.
    rows : tuple of tuple of str, default ()
        A table below the text; its first row names the columns.
    """

    heading: str
    sentences: list[str]
    rows: tuple[tuple[str, ...], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the section for JSON."""
        rows = {"rows": [list(row) for row in self.rows]} if self.rows else {}
        return {"heading": self.heading, "sentences": list(self.sentences), **rows}


class Certainty(NamedTuple):
    """How sure an attacker can become: beforehand, and afterwards at most.

    Attributes
    ----------
    before : float
        The probability that the attacker gives a statement about one person before
        the release, between 0 and 1.
    one_step : float
        The largest probability afterwards, if the statement tells values apart that
        the policy joins by an edge.
    any_value : float or None
        The same for the values that lie farthest apart; None where that distance is
        not known.
    steps : float or None
        How many edges of the policy lie between the farthest values; infinite where no
        path joins them; None where the policy has too many cells to find out.
    """

    before: float
    one_step: float
    any_value: float | None
    steps: float | None


def certainties(policy: Policy, budget: Budget) -> list[Certainty]:
    """Return how far a release can shift three beliefs about one person.

    Parameters
    ----------
    policy : Policy
        What stays indistinguishable.
    budget : Budget
        What the release spends. In rho, beliefs hold but for the probability that
        `left_out` states.

    Returns
    -------
    list of Certainty
        One for each belief beforehand: 1 %, 10 % and 50 %.
    """
    terms: dict[str, Any] = {budget.currency: budget.amount}
    if budget.power == 2:
        terms["delta"] = left_out(budget)
    steps: float | None = None
    # Known counts, or too many cells to compare.
    with suppress(BlowfishError):
        steps = most_steps(policy)
    certainty = []
    for prior in PRIORS:
        near = float(risk(prior, steps=1, **terms))
        far = None
        if steps is not None:
            # Counted once: all pairs of cells are compared for it.
            apart = {"steps": steps} if math.isfinite(steps) else {"policy": policy}
            far = float(risk(prior, **apart, **terms))
        certainty.append(Certainty(float(prior), near, far, steps))
    return certainty


def secret_section(policy: Policy, budget: Budget) -> Section:
    """Say what the policy keeps indistinguishable.

    Parameters
    ----------
    policy : Policy
        What stays indistinguishable.
    budget : Budget
        Its currency chooses the words.

    Returns
    -------
    Section
        Two sentences.
    """
    return Section(
        "What stays secret",
        [
            _sentence(policy.describe(budget)),
            f"Two databases count as neighbours when {policy.neighbours}.",
        ],
    )


def plain_promise(
    policy: Policy, budget: Budget, certainty: list[Certainty]
) -> list[str]:
    """Say what is promised in chances and in numbers of people, without a symbol.

    Parameters
    ----------
    policy : Policy
        What stays indistinguishable.
    budget : Budget
        What the release spends.
    certainty : list of Certainty
        What `certainties` returned, one of them for a belief of one in ten.

    Returns
    -------
    list of str
        Two sentences; the first is left out in rho, which bounds no single chance.
    """
    sentences = []
    if budget.power == 1:
        spent = float(budget.amount)
        once, thrice = (math.exp(min(times * spent, 700.0)) for times in (1, 3))
        if thrice < LARGEST_FACTOR:
            sentences.append(
                "The chance of whatever is published changes by a factor of at most "
                f"{_rounded_up(once)}, and of at most {_rounded_up(thrice)} after "
                f"three such changes, where {policy.neighbours}."
            )
    belief = next(item for item in certainty if item.before == TENTH)
    far = belief.any_value if belief.steps not in (1, math.inf) else None
    near = "have it" + (" rather than a value one step off" if far is not None else "")
    people = [(belief.one_step, "are there" if policy.has_bottom else near)]
    if far is not None:
        people.append((far, "have it rather than any other value"))
    # A number of people below 23.2 is at most 23.
    shares = [
        f"at most {math.floor(100 * most + 1e-9)} {what}" for most, what in people
    ]
    unless = ""
    if budget.power == 2:
        unless = f", but for a probability of {float(left_out(budget)):g}"
    sentences.append(
        "Somebody who thought so of 10 in 100 such people may come to think that "
        f"{', and that '.join(shares)}{unless}."
    )
    return sentences


def _rounded_up(factor: float) -> str:
    """Return a factor with three digits, none of them too small."""
    digits = 2 - math.floor(math.log10(factor))
    return f"{math.ceil(factor * 10**digits - 1e-9) / 10**digits:,.{max(digits, 0)}f}"


def attack_section(
    policy: Policy, budget: Budget, certainty: list[Certainty]
) -> Section:
    """Say how sure someone can become of one person's value.

    Parameters
    ----------
    policy : Policy
        What stays indistinguishable.
    budget : Budget
        What the release spends.
    certainty : list of Certainty
        What `certainties` returned; empty if nothing was spent.

    Returns
    -------
    Section
        Sentences, and a table from beliefs before to beliefs after.
    """
    heading = "What an attacker can learn"
    if not certainty:
        return Section(
            heading, ["Nothing about any one person: all that was released is public."]
        )
    sentences = [
        *plain_promise(policy, budget, certainty),
        "Someone may know the records of everybody else, the code and the policy. How "
        "likely a person's value seemed to them before, and can seem at most after "
        f"this release at {budget.in_short()}"
        + (
            ":"
            if budget.power == 1
            else f", but for a probability of {float(left_out(budget)):g}:"
        ),
    ]
    steps = certainty[0].steps
    several = steps is not None and steps != 1
    near = "whether they are there" if policy.has_bottom else "values one step apart"
    names = ["before", f"after: {near}" if several else "after"]
    if several:
        names.append(
            "after: any values"
            if steps == math.inf
            else f"after: values up to {steps:,.0f} steps apart"
        )
    rows = [tuple(names)]
    for belief in certainty:
        row = [f"{belief.before:.0%}", _percent(belief.one_step)]
        if several and belief.any_value is not None:
            row.append(_percent(belief.any_value))
        rows.append(tuple(row))
    if steps == math.inf:
        sentences.append(
            "Between values that no path of the policy joins nothing is promised: "
            "someone may become certain which of them a person has."
        )
    elif steps is None:
        sentences.append(
            "This is for values one step apart; d steps apart, "
            f"{'e^(eps * d)' if budget.power == 1 else 'rho d^2'}: the farther, the "
            "less."
        )
    return Section(heading, sentences, tuple(rows))


def limits_section(policy: Policy, budget: Budget) -> Section:
    """Say what is not promised.

    Parameters
    ----------
    policy : Policy
        What stays indistinguishable.
    budget : Budget
        Its currency chooses the words about groups.

    Returns
    -------
    Section
        A sentence for each thing that is not promised.
    """
    group = "e^(k * eps)" if budget.power == 1 else "k^2 rho"
    by_record = policy.person_rule is None
    whoever = "Whoever contributed k records" if by_record else "A group of k people"
    parts = policy.components()
    sentences = []
    if not policy.has_bottom:
        sentences.append(
            "The number of records is public under this policy."
            if parts.count == 1
            else f"The values fall into {parts.count:,} parts that no edge joins: "
            "which part holds a person is not protected, and the number of records in "
            "each is public."
        )
    if policy.has_constraints:
        sentences.append("The counts that are stated as known are public.")
    sentences += [
        f"{whoever} is protected by {group} only.",
        "Other releases about the same people add up; only a ledger that all of them "
        "go through keeps count.",
        "What is true of people at large, such as that incomes rise with age, may be "
        "learnt: that is what the release is for.",
        "If one person's record gives away another's, both count as changing together.",
    ]
    return Section("What is not promised", sentences)


def exactness_section(release: Release) -> Section:
    """Say how exact a release is."""
    sentences = []
    if release.interval_scope == "nothing":
        sentences.append(
            f"{recipe_name(release)} is not linear in its noise: its answers come "
            "without intervals, and how far they are off depends on the data."
        )
    elif measures_answers(release):
        sentences += [
            "Only the queries it was made for were measured, and only they have "
            "intervals.",
            "Other questions are answered from these as if records were spread evenly, "
            "and such an answer may be far off.",
        ]
    elif release.domain.size <= MOST_INTERVALS:
        half = half_width(release)
        if half is None:
            sentences.append("Intervals are known for the queries it was made for.")
        else:
            cells = Identity(release.domain)
            kind = release.interval_kind(cells)
            sentences += [
                f"In a single cell the noise stays within {half:,.3g} records, in 95 "
                "cases of 100 (the median over the cells).",
                release.interval_sentence(kind, workload=cells),
            ]
    return Section("How exact it is", sentences)


def explain_attack(
    policy: Policy, budget: Budget
) -> tuple[Section, list[dict[str, Any]]]:
    """Return what an attacker can learn, in sentences and as data.

    Parameters
    ----------
    policy : Policy
        What stays indistinguishable.
    budget : Budget
        What the release spends.

    Returns
    -------
    tuple of Section and list of dict
        The section, and its numbers for JSON.
    """
    sure = certainties(policy, budget) if budget.amount else []
    return attack_section(policy, budget, sure), [belief._asdict() for belief in sure]


def _list_section(release: SparseRelease) -> Section:
    """Say which cells are listed, and what is not known of the others."""
    reached = f"Cells whose noisy counts reach {release.threshold:,}"
    if release.listed.classes:
        reached = (
            "Words whose noisy counts reach a threshold that grows with their length, "
            f"up to {release.threshold:,},"
        )
    sentences = [
        f"{reached} are listed; lighter ones are missed.",
        f"In the mean {release.expected_false_cells:.3g} cells are listed though "
        "they are empty: noise goes on every cell.",
    ]
    if not release.complete:
        sentences.append(
            "The list was cut where it grew too long; nothing is known of the cells "
            "behind its end."
        )
    return Section("What is listed", sentences)


def _buckets_section(release: RangesRelease) -> Section:
    """Say what buckets are, and what intervals hold."""
    sentences = [
        "Buckets are short where many records are, and long where few are; where they "
        "begin was drawn, and is part of what was paid for.",
        "Ranges that cut a bucket count its records as if they were spread evenly; "
        "intervals hold the true answers whatever the data are.",
    ]
    return Section("How exact it is", sentences)


def _explained_look(
    look: LookRelease, file: str
) -> tuple[dict[str, Any], list[Section]]:
    """Return what a first look is and promises, as `explain_release` does."""
    promise = look.guarantee
    about = {
        "kind": "look",
        "mechanism": look.mechanism,
        "version": look.version,
        "private": look.private,
        "promise": str(promise),
        **promise.budget.to_dict(),
        "columns": [[column.name, column.kind] for column in look.columns],
    }
    origin = [
        f"A first look at {len(look.columns):,} columns of {look.rows:,} rows at "
        f"{promise.spent} (blowfish_fast {look.version}).",
        SECURE if look.private else SEEDED,
    ]
    rows = [
        ("column", "holds"),
        *((column.name, column.kind) for column in look.columns),
    ]
    return about, [
        Section(f"The release {file}", origin),
        Section("What is promised", [str(promise)]),
        Section("What the columns hold", [], tuple(rows)),
    ]


def explain_release(
    release: Release, file: str
) -> tuple[dict[str, Any], list[Section]]:
    """Return what a release is, promises and holds, as data and in sentences.

    Parameters
    ----------
    release : Release
        A release of any kind.
    file : str
        What the first heading calls it.

    Returns
    -------
    tuple of dict and list of Section
        The facts for JSON, and the sections in reading order.
    """
    if isinstance(release, LookRelease):
        return _explained_look(release, file)
    promise = release.guarantee
    policy = policies.from_dict(promise.policy)
    many = isinstance(release, TablesRelease)
    what = (
        f"{len(release.asked):,} tables of {release.domain.ndim} columns"
        if isinstance(release, TablesRelease)
        else f"A list of {len(release):,} of {release.domain.size:,} cells"
        if isinstance(release, SparseRelease)
        else f"Totals of {len(release):,} buckets of {release.domain.size:,} cells"
        if isinstance(release, RangesRelease)
        else f"An estimate of the counts of {release.domain.size:,} cells"
    )
    asked: Any = release
    if isinstance(asked, SeriesRelease):
        span = " to ".join(dict.fromkeys([asked.epochs[0], asked.epochs[-1]]))
        what = f"{what} of {span}, from {len(asked.parts)} releases of a series"
    name = recipe_name(release)
    strategy = name != release.mechanism
    by = f"{name} (a strategy of {release.mechanism})" if strategy else name
    origin = [
        f"{what}, made by {by} at {promise.spent} (blowfish_fast {release.version})."
        + (" They were made together, and agree with each other." if many else ""),
        SECURE if release.private else SEEDED,
        *promise.notes,
    ]
    if release.mechanism not in OWN:
        origin.append(f"{OUTSIDE}: whoever released it vouched for it.")
    about: dict[str, Any] = {
        "kind": "tables" if many else "release",
        "mechanism": name,
        "version": release.version,
        "private": release.private,
        "promise": str(promise),
        **promise.budget.to_dict(),
    }
    sections = [Section(f"The release {file}", origin)]
    sections.append(secret_section(policy, promise.budget))
    if isinstance(release, ChosenTablesRelease):
        about["tables"] = len(release.asked)
        about["measured"] = release.measured.to_dict()
        if release.has_certificate:
            about["certified"] = release.certificate()._asdict()
        return about, [*sections, _measured_section(release)]
    if isinstance(release, TablesRelease):
        errors = release.errors()
        about["tables"] = len(release.asked)
        about["errors"] = errors.to_table().to_dict()
        return about, [*sections, _tables_section(errors)]
    if isinstance(release, SparseRelease):
        about |= {"kind": "list", "threshold": release.threshold}
        return about, [*sections, _list_section(release)]
    if isinstance(release, RangesRelease):
        about |= {"kind": "ranges", "buckets": len(release)}
        return about, [*sections, _buckets_section(release)]
    attack, sure = explain_attack(policy, promise.budget)
    covered = release.interval_scope == "noise"
    about["cells"] = release.domain.size
    about["half_width"] = half_width(release) if covered else None
    about["certainty"] = sure
    exact = exactness_section(release)
    return about, [*sections, attack, exact, limits_section(policy, promise.budget)]


def _measured_section(release: ChosenTablesRelease) -> Section:
    """Say which tables were measured, how finely, and with how much noise."""
    table = release.measured
    names = ("table", "cells", "noise of a cell", "step", "times")
    columns = (table["table"], table["cells"], table["noise"], table["step"])
    # A weak attribute may be measured alone in every batch: one line, not ten.
    times = Counter(
        (str(title), str(cells), f"{noise:,.4g}", str(step))
        for title, cells, noise, step in zip(*map(list, columns), strict=True)
    )
    rows = [(*row, str(count)) for row, count in times.items()]
    sentence = (
        "Tables that were measured have intervals of the truth, at the merged cells "
        "listed here, of a table that is listed twice at those that stand first; noise "
        "is the standard deviation of one measurement. All other tables come from a "
        "model"
    )
    sentence += (
        "." if release.has_certificate else ", and how far it is off is not known."
    )
    sentences = (
        [sentence, f"{release.certificate()}."]
        if release.has_certificate
        else [sentence]
    )
    return Section("What was measured", sentences, (names, *rows))


def _tables_section(errors: TableErrors) -> Section:
    table = errors.by_ways()
    names = ("columns", "tables", "cells", "error", "mean count", "by cell")
    rows = [
        tuple(
            f"{value:,}" if isinstance(value, int) else f"{value:,.4g}" for value in row
        )
        for row in zip(*(table[name].tolist() for name in table), strict=True)
    ]
    accurate = (
        "Error of a cell (root mean square) beside its mean count, every table alike, "
        "and every cell alike. Tables whose error exceeds their counts are of use in "
        "larger groups only."
    )
    return Section("How accurate the tables are", [accurate], (names, *rows))


def half_width(release: Release) -> float | None:
    """Return the median half width of single cells at 95 %."""
    try:
        bounds = release.intervals(Identity(release.domain), 0.95, of="noise")
    except BlowfishError:
        return None
    return float(np.median(bounds[:, 1] - bounds[:, 0])) / 2


def docstring_labels(kind: type[Mechanism]) -> dict[str, str]:
    """Return the summary and the six labels of a mechanism, as plain text.

    The docstring of a mechanism has a fixed form, which tests see to: under ``Notes``
    stand lines that begin with a label, and under ``References`` the paper as [1].

        Guarantee: epsilon-Blowfish privacy for any policy, because
            the noise covers every edge.
        Neighbours: those of the policy.

    Parameters
    ----------
    kind : type[Mechanism]
        The class.

    Returns
    -------
    dict[str, str]
        The "Summary", each label that is there, and the "Paper" if one is cited.
    """
    lines = (inspect.getdoc(kind) or kind.__name__).splitlines()
    labels = {"Summary": lines[0]}
    label = ""
    for line in _section_lines(lines, "Notes"):
        word, colon, rest = line.partition(": ")
        if colon and word in LABELS:
            label = word
            labels[label] = rest
        elif not line or (colon and word.isidentifier()):
            # A blank line, or a word that is no label, ends the entry.
            label = ""
        elif label:
            labels[label] += f" {line}"
    for name, text in labels.items():
        if name != "Summary":
            plain = text.replace("`", "").replace("[1]_", "[1]")
            labels[name] = " ".join(plain.split())
    paper = _first_reference(lines)
    return labels | ({"Paper": paper} if paper else {})


def _section_lines(lines: list[str], heading: str) -> list[str]:
    """Return the lines below a heading that is underlined, up to the next one."""
    underlined = [
        number
        for number, (line, below) in enumerate(pairwise(lines))
        if line and below and set(below) == {"-"}
    ]
    for number in underlined:
        if lines[number] == heading:
            later = [other for other in underlined if other > number]
            return lines[number + 2 : later[0] if later else len(lines)]
    return []


def _first_reference(lines: list[str]) -> str:
    """Return the text of ``.. [1]``; it ends at a blank line or the next reference."""
    mark = ".. [1] "
    for number, line in enumerate(lines):
        if line.startswith(mark):
            parts = [line.removeprefix(mark)]
            for following in lines[number + 1 :]:
                if not following or following.startswith(".. "):
                    break
                parts.append(following)
            return " ".join(" ".join(parts).split())
    return ""


def explain_mechanism(name: str) -> tuple[dict[str, Any], list[Section]]:
    """Explain a mechanism, or a strategy of ``transformed``, by its name."""
    strategies: dict[str, str] = {
        str(word): meaning for word, meaning in strategy_choice.MEANINGS.items()
    }
    facts: dict[str, Any] = {"kind": "mechanism", "name": name, "labels": {}}
    name = OTHER_NAMES.get(name, name)
    if name in OWN or is_outside(name):
        kind = find_mechanism(name)
        labels = facts["labels"] = docstring_labels(kind)
        sections = [Section(kind.name, [labels["Summary"]])]
        sections += [
            Section(title, [_sentence(labels[label])])
            for label, title in LABELS.items()
            if label in labels
        ]
        if name not in OWN:
            sections[0].sentences.append(f"{OUTSIDE}.")
            return facts, sections
        if kind.name not in RHO_MECHANISMS:
            sections[1].sentences.append(MEANING)
        if "Paper" in labels:
            sections[-1].sentences.append(f"[1] {labels['Paper']}")
        return facts, sections
    if name in strategies:
        return facts, [
            Section(
                name,
                [
                    f"A strategy of transformed that measures {strategies[name]}.",
                    "Chosen by predicted error, from policy, workload and epsilon "
                    "alone.",
                ],
            ),
            *explain_mechanism("transformed")[1][1:],
        ]
    names = [*OWN, *strategies]
    raise InputError(
        "explain takes a job file (.toml), the file of a release, or the name of a "
        f"mechanism; received {name!r}{nearest(name, names)}. Mechanisms are "
        f"{', '.join(OWN)}"
    )


def _sentence(text: str) -> str:
    plain = text[:1].upper() + text[1:]
    return plain if plain.endswith(".") else f"{plain}."


def _percent(belief: float) -> str:
    """Round up: a bound must not look smaller than it is."""
    if 0.999 < belief < 1.0:
        return "nearly 100%"
    digits = 2 if belief < 0.1 else 1
    rounded = math.ceil(belief * 10 ** (2 + digits)) / 10**digits
    return f"{rounded:.{digits}f}%"
