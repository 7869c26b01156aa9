"""``python -m experiments NAME``: a table or figure of a paper, computed again.

python -m experiments dawa-table2 --data FOLDER     one of them
python -m experiments all --quick                   all, in their short form
python -m experiments page --out FOLDER             a page from finished runs
python -m experiments coverage                      docs/data/coverage/intervals.csv
python -m experiments answers                       its table of means and quantiles
python -m experiments certificates --trials 10000   shares of false certificates
python -m experiments survey --trials 3             all tables of surveys
python -m experiments rivals --data FOLDER          the same tables by other packages
python -m experiments chosen --data FOLDER          tables by plan and by choice
python -m experiments census --data FOLDER          docs/data/tables/census.csv
python -m experiments prior --data FOLDER           docs/data/tables/prior.csv
python -m experiments widths --data FOLDER          half-widths of certified intervals
python -m experiments sharpness                     half-widths of noise over exact ones
python -m experiments siblings --data FOLDER        the default beside its own siblings
python -m experiments weaker --data FOLDER          the same under weaker policies
python -m experiments series --trials 2000          errors of running totals
python -m experiments wide --trials 3               docs/data/wide: 2^60 cells
python -m experiments wide-coverage                 docs/data/coverage/wide.csv
python -m experiments clustered --trials 5          docs/data/wide/clustered.csv
python -m experiments runs --data FOLDER            docs/data/cells/runs.csv
python -m experiments spikes --data FOLDER          docs/data/cells/spikes.csv
python -m experiments geography                     docs/data/places/geography.csv
python -m experiments spikes-time                   docs/data/cells/spikes_time.csv
python -m experiments short-moves                   docs/data/cells/short_moves.csv
python -m experiments even-maps                     docs/data/places/even_maps.csv
python -m experiments lines --data FOLDER           docs/data/cells/lines.csv
python -m experiments pairs                         docs/data/cells/pairs.csv
python -m experiments neighbours                    docs/data/cells/neighbours.csv
python -m experiments smooth --data FOLDER          docs/data/cells/smooth.csv
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from blowfish_fast.apps.cli.commands.experiment import run_experiments
from blowfish_fast.apps.cli.printing import remark, show
from blowfish_fast.errors import BlowfishError, InputError

from .answer_coverage import write_answers
from .cells_in_runs import write_runs
from .cells_of_spikes import write_spikes, write_times
from .census_tables import write_census, write_priors
from .certified_widths import width_report
from .chosen_tables import chosen_report
from .clustered_lines import write_clustered
from .collection import ALL, all_experiments, experiment_named
from .even_maps import write_maps
from .geography import write_geography
from .interval_coverage import certificate_report, write_coverage
from .own_methods import PARTS, write_lines, write_neighbours, write_pairs
from .results_page import write_page
from .series_variance import series_report
from .sharp_widths import sharpness_report
from .short_moves import write_moves
from .siblings import sibling_report
from .smooth_ranges import write_smooth
from .survey_rivals import MOST_SECONDS, rival_report
from .survey_tables import survey_report
from .weaker_policies import weaker_report
from .wide_coverage import write_wide_coverage
from .wide_domains import write_wide_report

PAGE, COVERAGE, CERTIFICATES, ANSWERS = "page", "coverage", "certificates", "answers"
SURVEY, RIVALS, WIDTHS = "survey", "rivals", "widths"
SHARPNESS, SIBLINGS, WEAKER = "sharpness", "siblings", "weaker"
SERIES, WIDE, CHOSEN = "series", "wide", "chosen"
CENSUS, PRIOR = "census", "prior"
WIDE_COVERAGE, CLUSTERED, RUNS = "wide-coverage", "clustered", "runs"
SPIKES, SPIKES_TIME, SHORT_MOVES = "spikes", "spikes-time", "short-moves"
GEOGRAPHY, EVEN_MAPS = "geography", "even-maps"
LINES, PAIRS, NEIGHBOURS = "lines", "pairs", "neighbours"
SMOOTH = "smooth"
REFUSED = 2

application = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@application.command()
def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            help='A table or figure such as dawa-table2; "all" of them; "page", which '
            'writes a page from the results in --out; or "coverage", "answers", '
            '"certificates", "survey", "rivals", "widths", "sharpness", "siblings", '
            '"weaker", "series", "wide", "wide-coverage", "clustered", "chosen", '
            '"census", "prior", "runs", "spikes", "spikes-time", "geography", '
            '"short-moves", "even-maps", "lines", "pairs", "neighbours", "smooth".',
            show_default=False,
        ),
    ],
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder with 1d/*.npy and 2d/*.npy, for rivals, chosen, census and "
            "prior tables/*.csv.gz; "
            "generated data if left out."
        ),
    ] = None,
    trials: Annotated[
        int | None, typer.Option(help="Repetitions; the paper's number without.")
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="For chosen, prior and rivals: a survey; for rivals a package, for "
            'chosen and census a policy as well, and for chosen "looked" or "judged"; '
            'for lines: a policy and a question, as "Full cells", and a method '
            'if it alone is measured, as "Full cells no buckets"; may be repeated.'
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option(help="For rivals: CPU seconds of a package for one survey.")
    ] = MOST_SECONDS,
    out: Annotated[
        Path,
        typer.Option(help="Folder of the results; an interrupted run resumes there."),
    ] = Path("blowfish-experiments"),
    seed: Annotated[
        int | None,
        typer.Option(help="Seed of all randomness; drawn and noted if left out."),
    ] = None,
    processes: Annotated[int, typer.Option(help="Processes to share the work.")] = 2,
    quick: Annotated[
        bool, typer.Option("--quick", help="The short form: small, in seconds.")
    ] = False,
    anew: Annotated[
        bool, typer.Option("--anew", help="Discard what is in the folder already.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print plain JSON.")] = False,
) -> None:
    """Reproduce a table or figure of a paper, with a verdict."""
    if name == PAGE:
        page, names = write_page(out)
        written = f"written: {page}, from {len(names)} results"
        show({"page": str(page), "experiments": names} if json else written)
        return
    if name == COVERAGE:
        rows = write_coverage(trials=trials or 100)
        show(f"written: docs/data/coverage/intervals.csv, {len(rows)} lines")
        return
    if name == ANSWERS:
        found = write_answers(trials=trials or 40)
        show(f"written: docs/data/coverage/answers.csv, {len(found)} lines")
        return
    if name == CERTIFICATES:
        for kind, share, allowed in certificate_report(trials or 10_000):
            show(f"{kind}: {share:.4f} of the claims are false, {allowed:.4f} may be")
        return
    if name == SURVEY:
        show(survey_report(trials or 3))
        return
    if name == RIVALS:
        for line in rival_report(data, trials or 3, limit, only or ()):
            show(line)
        return
    if name == CHOSEN:
        for line in chosen_report(data, trials or 3, only or ()):
            show(line)
        return
    if name == CENSUS:
        if data is None:
            raise InputError(
                "the census is read from a file",
                received="no --data",
                way_out="State --data FOLDER with tables/adult.csv.gz",
            )
        for cased in write_census(data, trials or 3, only or ()):
            show(str(cased))
        return
    if name == PRIOR:
        for paired in write_priors(data, only or ()):
            show(f"{paired}: {paired.ratio:.2f}")
        return
    if name == WIDTHS:
        for line in width_report(data, trials or 3):
            show(line)
        return
    if name == SHARPNESS:
        for line in sharpness_report(trials):
            show(line)
        return
    if name == SIBLINGS:
        for line in sibling_report(data, trials):
            show(line)
        return
    if name == WEAKER:
        for line in weaker_report(data, trials):
            show(line)
        return
    if name == SERIES:
        for told in series_report(trials or 2_000):
            show(str(told))
        return
    if name == WIDE:
        for measured in write_wide_report(trials or 3):
            show(str(measured))
        return
    if name == CLUSTERED:
        for compared in write_clustered(trials or 5):
            show(str(compared))
        return
    if name == RUNS:
        for fitted in write_runs(data, trials or 10):
            show(str(fitted))
        return
    if name == SPIKES:
        for tested in write_spikes(data, trials or 8):
            show(str(tested))
        return
    if name == SHORT_MOVES:
        for moved in write_moves(trials or 4):
            show(str(moved))
        return
    if name == EVEN_MAPS:
        for drawn in write_maps(trials or 8):
            show(str(drawn))
        return
    if name == SPIKES_TIME:
        for timed in write_times(trials or 8):
            show(str(timed))
        return
    if name == LINES:
        for method in write_lines(data, trials, only or PARTS):
            show(str(method))
        return
    if name == NEIGHBOURS:
        for beside in write_neighbours(trials or 6):
            show(str(beside))
        return
    if name == SMOOTH:
        for followed in write_smooth(data, trials or 24):
            show(str(followed))
        return
    if name == PAIRS:
        for paired_line in write_pairs(trials or 24):
            show(str(paired_line))
        return
    if name == GEOGRAPHY:
        for figure in write_geography(trials or 3, quick=quick):
            show(str(figure))
        return
    if name == WIDE_COVERAGE:
        lines = write_wide_coverage(trials=trials or 40)
        show(f"written: docs/data/coverage/wide.csv, {len(lines)} lines")
        return
    run_experiments(
        list(all_experiments().values()) if name == ALL else [experiment_named(name)],
        data=data,
        trials=trials,
        out=out,
        seed=seed,
        processes=processes,
        quick=quick,
        anew=anew,
        as_json=json,
    )


def main() -> None:
    """Run the command; a refusal is one line and exit code 2."""
    try:
        application()
    except BlowfishError as refusal:
        remark(str(refusal), word="refused")
        sys.exit(REFUSED)


if __name__ == "__main__":
    main()
