"""The table [sample] of a job file, in the words that ``--sample`` takes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from blowfish_fast._support.validation import quoted
from blowfish_fast.apps.cli.options import SAMPLE_FORMS
from blowfish_fast.data.listed_items import QUOTE
from blowfish_fast.errors import InputError

from .file_lines import Key, told_with_line

SIMPLE, BERNOULLI, POISSON = "simple", "bernoulli", "poisson"
STRATIFIED, WEIGHTED = "stratified", "weighted"
TAKEN: dict[str, tuple[str, ...]] = {
    SIMPLE: ("population", "replacement"),
    BERNOULLI: ("rate",),
    POISSON: (),
    STRATIFIED: ("column", "population"),
    WEIGHTED: ("column", "weights", "trimmed", "people"),
}
"""What [sample] of a job file states beside ``drawn``, by design."""
AGAIN = "replacement"
CUTS = ("trimmed", "people")
"""What a weighted sample states where weights are trimmed."""


def sample_words(
    stated: Mapping[str, Any], folder: Path, lines: Mapping[Key, int]
) -> str | None:
    """Return a design as --sample takes it; None where none is stated.

    Parameters
    ----------
    stated : mapping
        The table [sample].
    folder : Path
        Where the job file is; a design names no file.
    lines : mapping
        The line of each key, for messages.

    Returns
    -------
    str or None
        The text that ``--sample`` takes.

    Raises
    ------
    InputError
        If there is no such design, or it takes other keys.
    """
    if not stated:
        return None
    with told_with_line(lines, "sample"):
        if "drawn" not in stated:
            raise InputError(
                "[sample] says how the records were drawn",
                received=", ".join(stated),
                way_out=f"State drawn = one of {', '.join(TAKEN)}",
            )
        return _table_words(stated["drawn"].strip(), stated)


def _table_words(kind: str, stated: Mapping[str, Any]) -> str:
    check_kind(kind)
    keys, others = TAKEN[kind], [name for name in stated if name != "drawn"]
    strange = [name for name in others if name not in keys]
    needed = [key for key in keys if kind != SIMPLE and key not in CUTS]
    lacking = [name for name in needed if name not in stated]
    if strange or lacking:
        takes = f"takes {' and '.join(keys)}" if keys else "takes nothing else"
        raise InputError(
            f'[sample] with drawn = "{kind}" {takes}',
            received=", ".join(others) or "nothing else",
        )
    people = stated.get("population")
    by_level = isinstance(people, Mapping)
    if people is not None and by_level != (kind == STRATIFIED):
        raise InputError(
            "population is a table from levels to people where strata were drawn, and "
            "one number otherwise",
            received=repr(people),
        )
    if kind == SIMPLE:
        words = [kind, *([] if people is None else [str(people)])]
        if stated.get("replacement"):
            words = [kind, "" if people is None else str(people), AGAIN]
        return ":".join(words)
    if kind == BERNOULLI:
        return f"{kind}:{stated['rate']}"
    if kind == POISSON:
        return kind
    if kind == STRATIFIED:
        parts = [f"{_quoted(level)}={size}" for level, size in stated[keys[1]].items()]
    else:
        parts = [str(weight) for weight in stated[keys[1]]]
    cuts = [f":{name}={_listed(stated[name])}" for name in CUTS if name in stated]
    return f"{kind}:{_quoted(stated['column'])}:{','.join(parts)}{''.join(cuts)}"


def _listed(numbers: list[float]) -> str:
    return ",".join(map(str, numbers))


def _quoted(text: str) -> str:
    return QUOTE + text.replace(QUOTE, QUOTE * 2) + QUOTE


def check_kind(kind: str) -> None:
    """Refuse what is no design; known ones that have no law with the reason."""
    if kind not in TAKEN:
        from blowfish_fast.release.sampling.designs import refused_design

        raise refused_design(kind) or InputError(
            f"a sample is {', '.join(TAKEN)}",
            received=quoted(kind),
            way_out=f"State one of these: {SAMPLE_FORMS}",
        )
