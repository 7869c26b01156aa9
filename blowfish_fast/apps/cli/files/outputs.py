"""Files that commands write: checked before anything is charged, by their endings.

What fails after the release loses nothing: it can be made again, for free.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast

from blowfish_fast._support.optional import check_installed
from blowfish_fast._support.validation import as_confidence
from blowfish_fast.accounting.series.saved import SavedSeries
from blowfish_fast.apps.cli.files import map_outputs
from blowfish_fast.apps.cli.files.page_tables import numbers_html, table_html
from blowfish_fast.apps.cli.options import refuse_existing
from blowfish_fast.apps.cli.parsing.domain import find_column
from blowfish_fast.apps.cli.parsing.job import Job
from blowfish_fast.apps.cli.parsing.workload import asks_tables
from blowfish_fast.apps.cli.printing import plain, plural
from blowfish_fast.data.domain import is_wide
from blowfish_fast.data.frames import Table, check_rows, write_csv
from blowfish_fast.errors import InputError, IntervalError, ReleaseFileError
from blowfish_fast.release.chosen_release import ChosenTablesRelease
from blowfish_fast.release.combination import (
    CombinedRelease,
    add,
    add_disjoint,
    combine,
    subtract,
)
from blowfish_fast.release.file import Release, write_bytes
from blowfish_fast.release.grants import BOUND_NAMES
from blowfish_fast.release.guarantee import recipe_name
from blowfish_fast.release.release import HistogramRelease
from blowfish_fast.release.second_look import look_again
from blowfish_fast.release.tables_release import TablesRelease, refuse_former
from blowfish_fast.release.wide.look_release import LookRelease
from blowfish_fast.release.wide.ranges_release import RangesRelease
from blowfish_fast.release.wide.sparse_release import SparseRelease

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from blowfish_fast.apps.cli.explanations import Section

ENDINGS = {
    "table": (".csv", ".xlsx", ".parquet", ".pq", ".json"),
    "tables": ("", ".xlsx"),
    "picture": (".png", ".svg", ".pdf"),
    "report": (".html", ".htm"),
    "registry": (".yaml", ".yml"),
    "synthetic": (".csv", ".xlsx", ".parquet", ".pq", ".json"),
}
PACKAGES = {
    ".xlsx": ("openpyxl", "excel"),
    **dict.fromkeys((".parquet", ".pq"), ("pyarrow", "frames")),
    **dict.fromkeys(ENDINGS["picture"], ("matplotlib", "plot")),
}
"""What is needed to write a file of some ending, and the extra that brings it."""
DOTS = 150
"""Dots per inch of a picture."""
RELEASE = "release.blowfish"
"""The file of the release, if nothing else is said."""
FOLDER = "tables"
"""Where many tables are written, if nothing else is said."""
CONFIDENCE = 0.95
"""Of the intervals, if nothing else is said."""
MOST_ROWS = 50
"""Lines of the table on a page."""
FIRST_TABLES = 12
"""Of many tables, how many a page shows."""
FIRST_ROWS = 15
"""Lines of each of them."""
COMBINATIONS: dict[str, Callable[[Any], Any]] = {
    "average": combine,
    "sum": lambda releases: reduce(add, releases[1:], releases[0]),
    "disjoint": add_disjoint,
    "difference": lambda releases: subtract(*releases),
}
"""What ``blowfish answer --how`` makes of several releases."""
FEW = 7
"""Values of a column up to which each has a line of its own."""
STYLE = Path(__file__).with_name("page.css").read_text()


def read_series(path: Path) -> SavedSeries | None:
    """Return the releases of a series; None where a file holds something else."""
    begin = path.read_bytes()[:64] if path.is_file() else b""
    return SavedSeries.load(path) if SavedSeries.is_file(begin) else None


def read_release(
    path: Path, *, upto: str | None = None, last: int | None = None
) -> Release:
    """Return a saved release: of all cells, of many tables, or a list of cells.

    Parameters
    ----------
    path : Path
        The file.
    upto : str, optional
        Of a series: the last epoch that is counted; left out, the latest.
    last : int, optional
        Of a series: how many epochs are counted; left out, all of them.

    Returns
    -------
    Release
        What can be asked; of a series the running total, or what was chosen of it.
    """
    series = read_series(path)
    if series is not None:
        return series_release(series, upto, last)
    if upto is not None or last is not None:
        raise InputError(
            "--upto and --last choose epochs of a series, and "
            f"{path} holds a release by itself; leave them out"
        )
    return Release.load(path)


def asked_release(release: Release | SavedSeries) -> Release:
    """Return what can be asked: of a series its running total up to the latest."""
    return series_release(release) if isinstance(release, SavedSeries) else release


def series_release(
    series: SavedSeries, upto: str | None = None, last: int | None = None
) -> Release:
    """Return what is asked of a series: a running total, or the last epochs of it.

    Parameters
    ----------
    series : SavedSeries
        A series with running totals.
    upto : str, optional
        The last epoch that counts; the latest by default.
    last : int, optional
        How many epochs count, of those up to there; all by default.

    Returns
    -------
    Release
        Something that is asked as a release is.
    """
    latest = series.latest if upto is None else upto
    # It answers as a release does, without being one.
    if last is None:
        return cast("Release", series.total(latest))
    return cast("Release", series.window(latest, last))


def combined(releases: Sequence[Release], how: str | None) -> Release:
    """Return releases asked together; they differ in noise, or in people.

    Parameters
    ----------
    releases : sequence of Release
        At least two.
    how : {"average", "sum", "disjoint", "difference"} or None
        What is made of them; it has no default, since only the curator knows whose
        records they hold.

    Returns
    -------
    Release
        Something that answers as a release does.
    """
    if how not in COMBINATIONS:
        raise InputError(
            "releases are asked together as --how average (the same people), sum, "
            "disjoint (a sum of different people) or difference",
            received="nothing" if how is None else repr(how),
        )
    if len(releases) < 2 or (how == "difference" and len(releases) > 2):
        raise InputError(
            f"--how {how} is about {'two' if how == 'difference' else 'several'} "
            f"releases; received {len(releases)}. Name the others, --with RELEASE"
        )
    return cast("Release", COMBINATIONS[how](releases))


def rounded(release: Release) -> Release:
    """Return whole counts of a release; what is made of several has none."""
    asked: Any = release
    if isinstance(asked, CombinedRelease):
        raise InputError(
            "whole counts are made of one release; leave --round out, and round what "
            "is published"
        )
    whole: Release = release.rounded()
    return whole


class Written(NamedTuple):
    """What was written where, and what could not be.

    Attributes
    ----------
    files : dict of str to str
        The path of each file that was written, by its kind: "release", "table",
        "picture", "map", "report" or "synthetic".
    problems : list of str
        A sentence for each file that could not be written. The release is safe all the
        same: it is written first.
    """

    files: dict[str, str]
    problems: list[str]


class Outputs:
    """The files of one release, as a job names them.

    The release itself has a default name; the other files are written only if named.

    Parameters
    ----------
    job : Job
        It names the files of the release, of a table, a picture, a report and
        made-up records.
    overwrite : bool
        Whether files that exist may be replaced.
    """

    def __init__(self, job: Job, *, overwrite: bool) -> None:
        if (job.release or "").lower().endswith(map_outputs.ENDINGS):
            job = map_outputs.with_map_named(job)
        self.many = asks_tables(job.workload)
        table = job.table or (FOLDER if self.many else None)
        asked = {"table": table, "picture": job.picture, "report": job.report}
        asked |= {"synthetic": job.synthetic, "map": job.map}
        self.whole = bool(job.round)
        self.map_system = job.map_system
        self.release = Path(job.release or RELEASE)
        self.named = {"release": self.release} | {
            kind: Path(name) for kind, name in asked.items() if name is not None
        }
        self.confidence = CONFIDENCE if job.confidence is None else job.confidence
        self.overwrite = overwrite
        self.reads = [
            Path(name)
            for name in (job.data, job.ledger)
            if name is not None and "://" not in name
        ]

    def check(self, workload: Any) -> None:
        """Refuse what could not be written; leaves nothing behind."""
        as_confidence(self.confidence)
        if self.whole and is_wide(workload.domain) and not self.many:
            raise InputError(
                "whole counts that add up are made of all cells, and nobody lists "
                f"{workload.domain.size:,}; leave --round out"
            )
        if "synthetic" in self.named and not self.many:
            raise InputError(
                "made-up records follow tables of many columns",
                received=f"--synthetic {self.named['synthetic']} without tables",
                way_out="Ask for tables, --tables 2; in Python release.sample() draws "
                "records of any histogram",
            )
        if self.map_system is not None and "map" not in self.named:
            raise InputError(
                "a reference system is that of a map",
                received=f"{self.map_system!r} and no map",
                way_out="Name the map: --out FILE.gpkg or --map FILE.tif",
            )
        paths = [path.absolute() for path in self.named.values()]
        if len(set(paths)) < len(paths):
            raise InputError(
                "release, table and picture are files of their own; received "
                f"{', '.join(str(path) for path in self.named.values())}"
            )
        for kind, path in self.named.items():
            self._check_place(kind, path)
            if kind == "map":
                domain = workload.domain
                self.districts = map_outputs.checked_map(path, domain, self.map_system)
            elif kind != "release":
                check_file("tables" if kind == "table" and self.many else kind, path)
            if kind == "table" and path.suffix.lower() == ".xlsx":
                wide = is_wide(workload.domain)
                # Of a wide domain rows are told after the draw, which keeps the
                # release whatever becomes of its table.
                shapes = workload.shapes if self.many else [workload.domain.shape]
                shapes = [(1,)] if wide and not self.many else shapes
                check_rows(path.name, max(map(math.prod, shapes)))

    def write(self, release: Release | SavedSeries) -> Written:
        """Write the release, then what is made from it."""
        files = {"release": self._save(release)}
        problems, sure = [], self.confidence
        for kind, path in list(self.named.items())[1:]:
            try:
                if kind == "table":
                    self._write_table(release, path)
                elif kind == "picture":
                    write_picture(lambda: release_axes(release, sure), path)
                elif kind == "map":
                    places = (self.districts, sure, self.map_system)
                    map_outputs.write_map(release, path, *places)
                elif kind == "synthetic":
                    assert isinstance(release, TablesRelease), "checked before"
                    write_table(release.sample(), path, str(release.guarantee))
                else:
                    shown: Any = {"name": files["release"], "whole": self.whole}
                    write_report(release, path, sure, **shown)
                files[kind] = str(path)
            except Exception as problem:
                # Paid for and safe by now: whatever went wrong is told, not raised.
                problems.append(
                    f"the {kind} {path} could not be written ({problem}); the release "
                    f"is safe in {files['release']}"
                )
        return Written(files, problems)

    def _write_table(self, release: Release | SavedSeries, path: Path) -> None:
        if isinstance(release, SavedSeries):
            table = series_table(release, self.confidence)
            write_table(table, path, str(series_release(release).guarantee))
        elif isinstance(release, TablesRelease):
            terms: Any = {"confidence": self.confidence, "overwrite": self.overwrite}
            release.save_tables(path, fitted=True, whole=self.whole, **terms)
        else:
            from blowfish_fast.apps.cli.files.population_page import with_population

            table = cell_table(release, self.confidence, whole=self.whole)
            table = with_population(table, release, self.confidence)
            write_table(table, path, str(release.guarantee))

    def _save(self, release: Release | SavedSeries) -> str:
        """Save the release; where its place has gone, save it in another."""
        content = release.to_bytes()
        try:
            write_bytes(content, self.release)
            return str(self.release)
        except ReleaseFileError as problem:
            handle, name = tempfile.mkstemp(prefix="release-", suffix=".blowfish")
            os.close(handle)
            write_bytes(content, name)
            raise InputError(
                f"{problem}; nothing is lost: the release was saved as {name}"
            ) from None

    def _check_place(self, kind: str, path: Path) -> None:
        if not path.parent.is_dir():
            raise InputError(
                f"there is no folder {path.parent} to write the {kind} to; make it "
                "first. Nothing was charged"
            )
        read = [place for place in self.reads if path.exists() and place.exists()]
        if any(path.samefile(place) for place in read):
            raise InputError(
                f"the {kind} would be written over {path}, which is read; choose "
                "another name"
            )
        folder = self.many and kind == "table" and path.suffix.lower() != ".xlsx"
        if path.exists():
            refuse_former(path, kind, folder=folder, overwrite=self.overwrite)
        try:
            handle, probe = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}")
        except OSError as problem:
            raise InputError(
                f"the {kind} cannot be written to {path.parent} ({problem.strerror}); "
                "choose another folder. Nothing was charged"
            ) from None
        os.close(handle)
        os.unlink(probe)


def check_file(kind: str, path: Path | None, *, overwrite: bool = True) -> None:
    """Refuse, before any work is done, a file that could not be written.

    Parameters
    ----------
    kind : {"table", "tables", "picture", "report", "synthetic"}
        What would be written.
    path : Path or None
        Where; None is always allowed.
    overwrite : bool
        Whether a file that exists may be replaced.

    Raises
    ------
    InputError
        If the ending, the folder or the file does not fit.
    MissingExtraError
        If a package that writes such files is not installed.
    """
    if path is None:
        return
    suffix, endings = path.suffix.lower(), ENDINGS[kind]
    if suffix not in endings:
        rule = f"a {kind} is written as {', '.join(endings)}"
        if "" in endings:
            rule = f"{kind} are written to a folder, or to one .xlsx"
        raise InputError(f"{rule}; received {path.name!r}")
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {path.parent} to write {path.name} to")
    if suffix in PACKAGES:
        package, extra = PACKAGES[suffix]
        check_installed(package, extra=extra, purpose=f"A {suffix} file")
    refuse_existing(path, overwrite=overwrite)


def cell_table(release: Release, confidence: float, *, whole: bool) -> Table:
    """Return a table with a line for each cell.

    Parameters
    ----------
    release : Release
        A release of all cells.
    confidence : float
        Of the intervals, which are left out where single cells have none.
    whole : bool
        Whether a column of whole counts is added, for publication.

    Returns
    -------
    Table
        Names of cells, estimates and intervals.
    """
    try:
        table: Table = release.to_table(confidence)
    except IntervalError:
        # Noise on stated queries: single cells have estimates, and no intervals.
        table = release.to_table(None)
    if whole:
        counts = release.rounded().estimate.reshape(-1).astype("int64")
        table = Table({**table.columns, "count": counts}, experiment=table.experiment)
    return table


def series_table(series: SavedSeries, confidence: float) -> Table:
    """Return a line per cell: the latest epoch, and the running total up to it.

    Parameters
    ----------
    series : SavedSeries
        A series with running totals.
    confidence : float
        Of the intervals.

    Returns
    -------
    Table
        Names of cells, and estimates with intervals of the latest epoch and of the
        total.
    """
    latest = series.latest
    total = series.total(latest).to_table(confidence)
    alone = series.epoch(latest).to_table(confidence)
    ends = ("estimate", *(end for pair in BOUND_NAMES.values() for end in pair))
    named = {name: column for name, column in total.columns.items() if name not in ends}
    for word, table in ((series.every, alone), ("total", total)):
        for name in ends:
            if name in table.columns:
                label = word if name == "estimate" else f"{word}_{name}"
                named[label] = table.columns[name]
    return Table(named, experiment=not series.private)


def write_table(table: Table, path: Path, promise: str) -> None:
    """Write a table by the ending of its name; a workbook holds the promise, too.

    Parameters
    ----------
    table : Table
        What is written.
    path : Path
        Its ending chooses the form.
    promise : str
        The guarantee, which a workbook holds on a sheet of its own.
    """
    suffix = path.suffix.lower()
    if suffix == ".csv":
        write_csv(table, path)
    elif suffix == ".xlsx":
        table.to_xlsx(path, about=promise)
    elif suffix == ".json":
        path.write_text(json.dumps(plain(table.to_dict())) + "\n", encoding="utf-8")
    else:
        table.to_parquet(path)


def write_picture(draw: Callable[[], Axes], out: Path | BinaryIO) -> str:
    """Draw, write, and return the name of the file; into a stream as SVG.

    Parameters
    ----------
    draw : callable
        Returns the axes.
    out : Path or binary file
        A file by its ending, or a stream, which gets SVG.

    Returns
    -------
    str
        The name of the file.
    """
    if isinstance(out, Path):
        check_file("picture", out)
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    with warnings.catch_warnings():
        # About ticks and fonts: nothing that a curator could act on.
        warnings.simplefilter("ignore")
        figure: Any = draw().figure
        kind = None if isinstance(out, Path) else "svg"
        figure.savefig(out, dpi=DOTS, format=kind)
    pyplot.close(figure)
    return str(out)


def release_axes(
    release: Release | SavedSeries,
    confidence: float,
    by: Sequence[str | int] = (),
    last: int | None = None,
) -> Axes:
    """Draw counts, or the errors of many tables; intervals where they are known.

    Parameters
    ----------
    release : Release or SavedSeries
        What was published.
    confidence : float
        Of the intervals.
    by : sequence of str or int
        Columns that counts are broken down by.
    last : int, optional
        Of a series: draw so many epochs together instead of running totals.

    Returns
    -------
    matplotlib Axes
        The axes.
    """
    from blowfish_fast import plotting

    if isinstance(release, SavedSeries):
        return _series_axes(release, confidence, by, last)
    if last is not None:
        raise InputError("--last draws epochs of a series; leave it out")
    if isinstance(release, ChosenTablesRelease) and not by:
        return plotting.measured_tables(release)
    if isinstance(release, TablesRelease) and not by:
        return plotting.table_errors(release.errors())
    if isinstance(release, SparseRelease | RangesRelease):
        if by:
            raise InputError("a release of a wide domain is drawn without --by")
        if isinstance(release, RangesRelease):
            return plotting.buckets(release, confidence=confidence)
        return plotting.listed_cells(release, confidence=confidence)
    if release.domain.ndim > 2 and not by:
        small = [at for at, cells in enumerate(release.domain.shape) if cells <= FEW]
        by = [0, *[at for at in small if at > 0][:1]]
    if len(by) > 2:
        raise InputError(
            "a picture shows counts by one or two columns",
            received=f"{len(by)} columns",
            way_out="Name two of them, --by; blowfish answer RELEASE --by takes more",
        )
    if by:
        counts = release.group_by(*by).count()
        return plotting.groups(counts, confidence=confidence)
    if release.domain.ndim == 2:
        return plotting.grid_map(release)
    try:
        return plotting.histogram(release, confidence=confidence)
    except IntervalError:
        assert isinstance(release, HistogramRelease)
        return plotting.histogram(replace(release, interval_scope="nothing"))


def _series_axes(
    series: SavedSeries,
    confidence: float,
    by: Sequence[str | int],
    last: int | None,
) -> Axes:
    """Draw a series over time; by the first column of few values if none is named."""
    from blowfish_fast import plotting

    if len(by) > 1:
        raise InputError(
            "a series is drawn by one column",
            received=f"{len(by)} columns",
            way_out="Name one of them, --by",
        )
    domain = series.rows[series.latest].domain
    if by:
        chosen: str | int | None = find_column(str(by[0]), domain)
    else:
        small = (at for at, cells in enumerate(domain.shape) if cells <= FEW)
        chosen = next(small, None)
    return plotting.series(series, by=chosen, last=last, confidence=confidence)


def write_report(
    release: Release | SavedSeries,
    path: Path,
    confidence: float,
    *,
    name: str,
    whole: bool,
    sample: str | None = None,
) -> None:
    """Write the page of a release, which it calls by `name`.

    Parameters
    ----------
    release : Release or SavedSeries
        What was published.
    path : Path
        The file of the page.
    confidence : float
        Of the intervals.
    name : str
        What the page calls the file of the release.
    whole : bool
        Whether whole counts are shown, too.
    sample : str, optional
        How the records were drawn, in the words of ``--sample``.
    """
    if isinstance(release, LookRelease):
        from blowfish_fast.apps.cli.files.look_page import write_look

        write_look(release, path, confidence, name=Path(name).name)
        return
    # Here, since a page needs every mechanism's words, and other commands do not.
    from blowfish_fast.apps.cli.explanations import explain_release
    from blowfish_fast.apps.cli.files.population_page import (
        population_section,
        with_population,
    )
    from blowfish_fast.apps.cli.files.registry_entry import title_of
    from blowfish_fast.apps.cli.population_questions import drawn_release

    drawn, series = release, release if isinstance(release, SavedSeries) else None
    release = asked_release(release)
    title = title_of(release, drawn)
    if sample is not None:
        release = drawn_release(release, sample, None)
    _, sections = explain_release(release, name)
    parts = [f"<h1>{escape(title)}</h1>", f"<p>{escape(str(release.guarantee))}</p>"]
    if not release.private:
        parts.append(
            '<p class="warning">An experiment: its noise was seeded, and it protects '
            "nobody. Do not publish it as a private release.</p>"
        )
    parts += [
        f'<p class="warning">Look again: {escape(text)}</p>'
        for text in look_again(release)
    ]
    parts.append(_figure(drawn, confidence, title))
    sections += population_section(release, confidence)
    parts += [_section(section) for section in sections]
    if isinstance(release, TablesRelease):
        parts += _first_tables(release, confidence, whole=whole)
    else:
        parts.append("<h2>The numbers</h2>")
        if series is None:
            table = cell_table(release, confidence, whole=whole)
            table = with_population(table, release, confidence, MOST_ROWS)
        else:
            table = series_table(series, confidence)
        parts.append(numbers_html(table, "The numbers", MOST_ROWS))
    parts += ["<h2>How to cite it</h2>", *_citation(release, drawn, title, name)]
    head = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
    )
    page = f"{head}<main>\n{chr(10).join(parts)}\n</main>\n</body>\n</html>\n"
    path.write_text(page, encoding="utf-8")


def _figure(release: Release | SavedSeries, confidence: float, title: str) -> str:
    """Return the picture as part of the page; nothing where none can be drawn."""
    if find_spec("matplotlib") is None:
        return ""
    stream = io.BytesIO()
    write_picture(lambda: release_axes(release, confidence), stream)
    svg = stream.getvalue().decode("utf-8")
    kind = "tables" if isinstance(release, TablesRelease) else "counts"
    head = f'<svg role="img" aria-label="{escape(title)}, drawn" class="{kind}" '
    svg = svg[svg.index("<svg") :].replace("<svg ", head, 1)
    return f"<figure>{svg}</figure>"


def _section(section: Section) -> str:
    lines = [f"<h2>{escape(section.heading)}</h2>"]
    lines += [f"<p>{escape(sentence)}</p>" for sentence in section.sentences]
    if section.rows:
        names, *rows = section.rows
        lines.append(
            table_html(list(names), [list(row) for row in rows], section.heading)
        )
    return "\n".join(lines)


def _first_tables(
    release: TablesRelease, confidence: float, *, whole: bool
) -> list[str]:
    """Return the head of each of the first tables, and where all of them are."""
    kinds = {"fitted": False} | ({"whole": True} if whole else {})
    sentence = "Fitted counts are not negative" + "; whole ones add up exactly" * whole
    shown = "Intervals are around the estimate."
    if isinstance(release, ChosenTablesRelease):
        sentence = (
            "These are tables of the model" + "; whole ones add up exactly" * whole
        )
        shown = "Only tables that were measured have intervals."
    parts = [
        "<h2>The tables</h2>",
        f"<p>{sentence}. {shown}</p>",
    ]
    more = len(release.asked) - FIRST_TABLES
    for names in release.asked[:FIRST_TABLES]:
        title = " x ".join(map(str, names))
        parts.append(f"<h3>{escape(title)}</h3>")
        table = release.lines_of(names, kinds, confidence)
        parts.append(numbers_html(table, title, FIRST_ROWS))
    rest = f"And {plural(more, 'more table')}. " if more > 0 else ""
    parts.append(
        f"<p>{rest}All of them stand whole in the folder or workbook that "
        "<code>blowfish release</code> wrote; in Python "
        "<code>release.save_tables</code> writes it again.</p>"
    )
    return parts


def _citation(
    release: Release, stored: Release | SavedSeries, title: str, name: str
) -> list[str]:
    """Return how a release is cited; its file holds what was `stored`."""
    digest = hashlib.sha256(stored.to_bytes()).hexdigest()
    cited = (
        f"{title}. Released by {recipe_name(release)} at {release.guarantee.spent} "
        f"with blowfish_fast {release.version}; file {Path(name).name}, SHA-256 "
        f"{digest}."
    )
    return [
        f"<p>{escape(cited)}</p>",
        "<p>State the promise above with every number that is taken from here, and the "
        "interval beside it.</p>",
    ]
