"""The report of an audit as JSON, one table, and one HTML page that loads nothing."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blowfish_fast.errors import InputError

from .choices import selector_names
from .plan import AuditPlan
from .verdicts import PROMISED_POWER, Verdict

STYLE = Path(__file__).with_name("report.css").read_text()

COLUMNS = (
    "subject",
    "stops",
    "edges priced",
    "worst price / charged",
    "random pairs",
    "samples",
    "strongest log-ratio / epsilon",
    "power at 5 %",
    "result",
)
"""Heads of the summary: a stop is a policy family on a domain."""
FILES = ("audit.json", "audit.html", "audit.md")
SAMPLED = ("noise", "rho noise", "choice", "release")

GOALS = {
    "long": "every mechanism and partition under every policy family: 10^7 samples per "
    "side on choices, 10^5 on the rest, within an hour: no violation",
    "quick": "every mechanism and partition under every policy family, in CI: no "
    "violation",
}
"""What an audit is for, by its form."""


@dataclass(frozen=True)
class Report:
    """All verdicts of one walk, and how it was made.

    Attributes
    ----------
    verdicts : tuple[Verdict, ...]
        The verdicts.
    plan : AuditPlan
        How thorough it was.
    form : str
        "long" or "quick".
    seconds : float
        How long it took.
    version : str
        The version of the package.

    Examples
    --------
    >>> from blowfish_fast.audit import QUICK, audit_everything
    >>> plan = QUICK._replace(sampled=(), priced=(2,))
    >>> verdicts = audit_everything(plan, mechanisms=["privelet"])
    >>> report = Report(tuple(verdicts), plan, "quick", seconds=1.0, version="0.1")
    >>> report.passed, report.subjects
    (True, ['privelet'])
    """

    verdicts: tuple[Verdict, ...]
    plan: AuditPlan
    form: str
    seconds: float
    version: str

    @property
    def violations(self) -> list[Verdict]:
        """The verdicts that did not pass."""
        return [verdict for verdict in self.verdicts if not verdict.passed]

    @property
    def passed(self) -> bool:
        """Whether there is no violation."""
        return not self.violations

    @property
    def subjects(self) -> list[str]:
        """Everything that was audited, by name."""
        return list(dict.fromkeys(verdict.subject for verdict in self.verdicts))

    @property
    def families(self) -> list[str]:
        """The policy families met, in the order met."""
        met = (verdict.family for verdict in self.verdicts if verdict.family != "any")
        return list(dict.fromkeys(met))

    def statements(self) -> list[str]:
        """Say in sentences what was done and how sure it is."""
        sampled = _sampled(self.verdicts)
        lines = [
            f"{len(self.subjects)} subjects under {len(self.families)} policy families "
            f"were audited in {self.seconds:,.0f} s ({self.form} form, version "
            f"{self.version}): {len(self.verdicts):,} verdicts, "
            f"{len(self.violations)} violations.",
            f"{_events(self._by('prices')):,} policy edges were priced exactly against "
            "what was charged.",
            f"{_samples(sampled):,} samples in {len(sampled):,} black-box audits; "
            "Clopper-Pearson bounds hold together with confidence "
            f"{100 * self.plan.confidence:g} % "
            f"(each with {100 * self.plan.each:.8g} %, Bonferroni).",
            f"{_events(self._by('sensitivity')):,} random neighbours along policy "
            "edges were priced against the noise declared, in measurements and in "
            "choices.",
        ]
        powers = self._by("power")
        if powers:
            strong = [verdict for verdict in powers if verdict.found >= PROMISED_POWER]
            lines.append(
                f"Power: an excess of 5 % at epsilon 1 was planted {powers[0].events} "
                f"times in each of {len(powers)} cases, of mechanisms and selectors; "
                f"{len(strong)} of them "
                f"were caught at least {100 * PROMISED_POWER:g} % of the time with "
                f"up to {_most_samples(powers):,} samples per side. Exact "
                "prices see any excess."
            )
        return lines

    def _by(self, check: str) -> list[Verdict]:
        return [verdict for verdict in self.verdicts if verdict.check == check]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON."""
        return {
            "passed": self.passed,
            "form": self.form,
            "version": self.version,
            "seconds": round(self.seconds, 1),
            "confidence": self.plan.confidence,
            "confidence_of_each_audit": self.plan.each,
            "samples": {
                "random_pairs_per_stop": self.plan.pairs,
                "pairs_searched": self.plan.steps,
                "choices_in_batches": self.plan.batch,
                "choices_one_by_one": self.plan.runs,
                "measurements": self.plan.noise,
                "releases": self.plan.releases,
            },
            "statements": self.statements(),
            "verdicts": [
                verdict._asdict()
                | ({} if math.isfinite(verdict.found) else {"found": None})
                for verdict in self.verdicts
            ],
        }

    def figures(self) -> dict[str, dict[str, Any]]:
        """Return what the table of all measurements says of this audit."""
        prices, pairs = self._by("prices"), self._by("sensitivity")
        compared = _sampled(self.verdicts)
        most = max((verdict.samples for verdict in self._by("choice")), default=0)
        each = [
            _events([verdict for verdict in pairs if verdict.subject == subject])
            for subject in {verdict.subject for verdict in prices}
        ]
        figures = {
            "audit": self._figure(
                GOALS.get(self.form, "no violation"),
                f"{self.form} form: {len(self.subjects)} subjects, "
                f"{len(self.families)} families, {_samples(compared):.3g} samples (up "
                f"to {most:.2g} per side), {len(self.verdicts):,} verdicts, "
                f"{self.seconds / 60:.0f} min: {len(self.violations)} violations; "
                f"strongest log-ratio {_largest(compared)} of epsilon",
                self.verdicts,
            ),
            "grey_box": self._figure(
                "every policy edge priced exactly; 1,000 random neighbours per "
                "mechanism within what was charged",
                f"{_events(prices):,} edges, at least {min(each, default=0):,} "
                f"neighbours per mechanism; worst {_largest([*prices, *pairs])} of the "
                "charge",
                [*prices, *pairs],
            ),
        }
        if self._by("rho prices"):
            figures["rho"] = self._rho_figure()
        if any(verdict.subject in selector_names() for verdict in self._by("power")):
            figures["selections"] = self._selections_figure()
        powers = self._by("power")
        if powers:
            figures["power"] = self._figure(
                "an excess of 5 % at epsilon 1 seen nine times in ten, in what is "
                "measured and in what is chosen",
                f"planted {powers[0].events} times in each of {len(powers)} cases of "
                f"{_subjects(powers)} mechanisms and selectors, up "
                f"to {_most_samples(powers):,} samples per side: seen in "
                f"at least {min(verdict.found for verdict in powers):.0%}",
                powers,
            )
        return figures

    def _rho_figure(self) -> dict[str, Any]:
        paid, drawn = self._by("rho prices"), self._by("rho noise")
        watched = self._by("rho invariants")
        return self._figure(
            "budgets in rho: every edge priced by squared moves within the charge, "
            "watched runs as they must be, noise within the (epsilon, delta) that rho "
            "implies",
            f"{_subjects(paid)} mechanisms, {_events(paid):,} "
            f"edges, worst price {_largest(paid)} of the charge; {len(watched):,} "
            f"watched runs; {_samples(drawn):.3g} samples, strongest bound "
            f"{_largest(drawn)} of epsilon",
            [*paid, *watched, *drawn],
        )

    def _selections_figure(self) -> dict[str, Any]:
        """Tell of selectors by themselves: draws on neighbours, and planted excess."""
        names = selector_names()
        choices, powers = (
            [verdict for verdict in self._by(check) if verdict.subject in names]
            for check in ("choice", "power")
        )
        most: dict[str, int] = {}
        for verdict in choices:
            most[verdict.subject] = max(most.get(verdict.subject, 0), verdict.samples)
        least = min(most.values(), default=0)
        figure = self._figure(
            f"{self.plan.batch:.0e} draws per side of every selector, under moves and "
            "under add/remove, at epsilon 1/2, 1 and 2: no violation; an excess of 5 % "
            "at epsilon 1 in each seen nine times in ten",
            f"{len(most)} selectors, at least {least:.2g} draws per side of each on "
            f"its worst pair, {_samples(_sampled(choices)):.3g} in all: strongest "
            f"log-ratio {_largest(choices)} of epsilon; excess planted in "
            f"{_subjects(powers)} of them, seen in at least "
            f"{min(verdict.found for verdict in powers):.0%}",
            [*choices, *powers],
        )
        every = most.keys() == {verdict.subject for verdict in powers} == set(names)
        enough = every and least >= self.plan.batch
        return {**figure, "passed": figure["passed"] and enough}

    def _figure(
        self, goal: str, measured: str, verdicts: Iterable[Verdict]
    ) -> dict[str, Any]:
        passed = all(verdict.passed for verdict in verdicts)
        fields = {"goal": goal, "measured": measured, "passed": passed}
        return {**fields, "form": self.form}

    def to_json(self) -> str:
        """Return the report as JSON."""
        return json.dumps(self.to_dict(), indent=1)

    def to_markdown(self) -> str:
        """Return the table that the documentation shows: a line per subject."""
        lines = ["| " + " | ".join(COLUMNS) + " |", "|---" * len(COLUMNS) + "|"]
        lines += ["| " + " | ".join(row) + " |" for row in self.rows()]
        return "\n".join(
            [*lines, "", *(f"- {statement}" for statement in self.statements()), ""]
        )

    def rows(self) -> list[tuple[str, ...]]:
        """Return a row per subject, in the order of `COLUMNS`."""
        return [_summary(self._of(subject)) for subject in self.subjects]

    def _of(self, subject: str) -> list[Verdict]:
        return [verdict for verdict in self.verdicts if verdict.subject == subject]

    def to_html(self) -> str:
        """Return one page that needs nothing else."""
        title = "Audit: " + ("no violation" if self.passed else "VIOLATIONS FOUND")
        parts = [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{title}</title><style>{STYLE}</style></head><body>",
            f"<h1>{title}</h1>",
            *(f"<p>{html.escape(statement)}</p>" for statement in self.statements()),
        ]
        if self.violations:
            parts += ["<h2>Violations</h2>", _html_table(self.violations)]
        parts += ["<h2>By subject and policy family</h2>", self._html_matrix()]
        parts.append("<h2>Every verdict</h2>")
        parts += [
            f"<details><summary>{html.escape(subject)}</summary>"
            f"{_html_table(self._of(subject))}</details>"
            for subject in self.subjects
        ]
        return "\n".join([*parts, "</body></html>", ""])

    def _html_matrix(self) -> str:
        rows = []
        for subject in self.subjects:
            cells = [_cell(subject, "th")]
            for family in self.families:
                met = [
                    verdict for verdict in self._of(subject) if verdict.family == family
                ]
                if met:
                    samples = f"{len(met)} checks, {_samples(_sampled(met)):,} samples"
                    cells.append(_verdict_cell(met, samples))
                else:
                    cells.append(_cell("not offered", kind="none"))
            rows.append(cells)
        return _html_rows(["", *self.families], rows)

    def write(self, folder: Path) -> list[Path]:
        """Write audit.json, audit.html and audit.md into `folder`."""
        folder.mkdir(parents=True, exist_ok=True)
        texts = (self.to_json(), self.to_html(), self.to_markdown())
        paths = [folder / name for name in FILES]
        for path, text in zip(paths, texts, strict=True):
            path.write_text(text, encoding="utf-8")
        return paths


def _sampled(verdicts: Iterable[Verdict]) -> list[Verdict]:
    return [
        verdict
        for verdict in verdicts
        if verdict.samples > 0 and verdict.check in SAMPLED
    ]


def _samples(verdicts: Iterable[Verdict]) -> int:
    return sum(2 * verdict.samples for verdict in verdicts)


def _most_samples(verdicts: Iterable[Verdict]) -> int:
    return max(verdict.samples for verdict in verdicts)


def _subjects(verdicts: Iterable[Verdict]) -> int:
    return len({verdict.subject for verdict in verdicts})


def _events(verdicts: Iterable[Verdict]) -> int:
    return sum(verdict.events for verdict in verdicts)


def _summary(verdicts: list[Verdict]) -> tuple[str, ...]:
    prices, pairs, powers = (
        [verdict for verdict in verdicts if verdict.check == check]
        for check in ("prices", "sensitivity", "power")
    )
    sampled = _sampled(verdicts)
    compared = [verdict for verdict in verdicts if verdict.check in SAMPLED]
    stops = {(verdict.family, verdict.domain) for verdict in verdicts}
    failed = [verdict for verdict in verdicts if not verdict.passed]
    return (
        verdicts[0].subject,
        str(len(stops)),
        f"{_events(prices):,}" if prices else "-",
        _largest(prices),
        f"{_events(pairs):,}" if pairs else "-",
        f"{_samples(sampled):,}" if sampled else "-",
        _largest(compared),
        f"{powers[0].found:.2f}" if powers else "-",
        f"{len(failed)} VIOLATIONS" if failed else f"{len(verdicts)} checks passed",
    )


def _largest(verdicts: Iterable[Verdict]) -> str:
    shares = [
        verdict.found / verdict.epsilon for verdict in verdicts if verdict.epsilon > 0
    ]
    return f"{max(shares):.3f}" if shares else "-"


def _html_table(verdicts: list[Verdict]) -> str:
    heads = (
        *("check", "family", "domain", "may cost", "found", "samples per side"),
        *("events", "verdict", "note"),
    )
    rows = []
    for verdict in verdicts:
        words = (
            *(verdict.check, verdict.family, verdict.domain, f"{verdict.epsilon:.4g}"),
            *(f"{verdict.found:.4g}", f"{verdict.samples:,}", f"{verdict.events:,}"),
        )
        rows.append([*map(_cell, words), _verdict_cell([verdict]), _cell(verdict.note)])
    return _html_rows(heads, rows)


def _html_rows(heads: Iterable[str], rows: Iterable[list[str]]) -> str:
    lines = [[_cell(head, "th") for head in heads], *rows]
    return "<table>" + "".join(f"<tr>{''.join(row)}</tr>" for row in lines) + "</table>"


def _cell(words: str, tag: str = "td", kind: str = "") -> str:
    marked = f' class="{kind}"' if kind else ""
    return f"<{tag}{marked}>{html.escape(words)}</{tag}>"


def _verdict_cell(verdicts: list[Verdict], below: str = "") -> str:
    passed = all(verdict.passed for verdict in verdicts)
    kind, word = ("good", "passed") if passed else ("bad", "VIOLATION")
    return _cell(f"{word}: {below}" if below else word, kind=kind)


def note_figures(path: Path, figures: dict[str, dict[str, Any]]) -> None:
    """Write entries of a file of figures; its other keys stay.

    Parameters
    ----------
    path : Path
        The file.
    figures : dict[str, dict[str, object]]
        Entries of `goal`, `measured` and `passed`, by key.

    Raises
    ------
    InputError
        If an entry lacks one of the three.
    """
    figures_so_far = read_figures(path) if path.exists() else {}
    for key, entry in figures.items():
        missing = {"goal", "measured", "passed"} - entry.keys()
        if missing:
            raise InputError(f"{key} lacks {sorted(missing)}; received {entry}")
        figures_so_far[key] = entry
    text = json.dumps(figures_so_far, indent=1, sort_keys=True)
    path.write_text(text + "\n", encoding="utf-8")


def read_figures(path: Path) -> dict[str, dict[str, Any]]:
    """Read the file of figures."""
    try:
        content: dict[str, dict[str, Any]] = json.loads(
            path.read_text(encoding="utf-8")
        )
    except (OSError, ValueError) as problem:
        raise InputError(
            f"{path} holds no figures ({problem}); blowfish audit --record writes them"
        ) from problem
    return content
