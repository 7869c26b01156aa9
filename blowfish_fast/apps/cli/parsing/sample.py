"""How records were drawn, as flags and job files say it: ``simple:48842``.

words                                         table [sample] of a job file
simple                                        drawn = "simple"
simple:48842                                  ... population = 48842
simple:48842:replacement                      ... replacement = true
bernoulli:0.05                                ... rate = 0.05
poisson                                       drawn = "poisson"
stratified:region:north=12000,south=36842     ... column, and population by level
weighted:weight:64,32,16,8,4                  ... column, weights = [64, 32, ...]
weighted:weight:64,32,4:trimmed=32,16         ... trimmed = [32, 16]
weighted:weight:64,4:trimmed=4:people=90,500  ... people = [90, 500]
survey.toml                                   the table [sample] of that file
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blowfish_fast._support.validation import malformed_as, quoted
from blowfish_fast.apps.cli.options import SAMPLE_FORMS
from blowfish_fast.data.listed_items import read_item, split_items
from blowfish_fast.errors import InputError

from .job import Job
from .sample_table import (
    AGAIN,
    BERNOULLI,
    CUTS,
    POISSON,
    SIMPLE,
    STRATIFIED,
    check_kind,
)

if TYPE_CHECKING:
    # Job files are read by commands that load no release.
    from blowfish_fast.data.domain import Domain
    from blowfish_fast.release.sampling.designs import SamplingDesign

COLON, EQUALS = re.compile(":"), re.compile("=")


def parse_sample(words: str, domain: Domain) -> SamplingDesign:
    """Read how records were drawn, and check it against the cells.

    Parameters
    ----------
    words : str
        A design in words, or a job file with the table [sample].
    domain : Domain
        The cells of the release; strata and weights are columns of it.

    Returns
    -------
    SamplingDesign
        The design.

    Raises
    ------
    InputError
        If the words cannot be read, or name what the domain has not.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> parse_sample("simple:48842", bf.Domain(8)).describe()
    'a simple random sample of 48,842 people'
    """
    if Path(words).suffix.lower() == ".toml":
        words = _of_file(Path(words))
    item, stop = read_item(words, 0, COLON)
    kind, rest = item.text, words[stop + 1 :]
    check_kind(kind)
    design = _design(kind, rest, domain)
    design.check(domain)
    return design


def _of_file(path: Path) -> str:
    stated = Job.from_file(path).sample
    if stated is None:
        raise InputError(
            f"{path} does not say how the records were drawn",
            way_out='Add a table [sample] with drawn = "simple" and population = 48842',
        )
    return stated


def _design(kind: str, rest: str, domain: Domain) -> SamplingDesign:
    from blowfish_fast.release.sampling.designs import (
        Bernoulli,
        Poisson,
        Simple,
        Stratified,
        Weighted,
    )

    if kind == POISSON:
        return Poisson() if not rest else _refuse(kind, rest)
    if kind == BERNOULLI:
        # The design reads the text itself: 0.05 is then 1/20, and no nearby float.
        return Bernoulli(rate=rest.strip())  # type: ignore[arg-type]
    if kind == SIMPLE:
        size, _, again = rest.partition(":")
        if again not in ("", AGAIN):
            return _refuse(kind, rest)
        people = None if not size.strip() else _people(size)
        return Simple(people, replacement=again == AGAIN)
    column, stop = read_item(rest, 0, COLON)
    listed = rest[stop + 1 :]
    if not listed:
        return _refuse(kind, rest)
    if kind == STRATIFIED:
        return Stratified(column.text, _sizes(column.text, listed, domain))
    numbers, *others = listed.split(":")
    more: dict[str, Any] = {}
    for part in others:
        name, _, values = part.partition("=")
        if name.strip() not in CUTS or name.strip() in more:
            return _refuse(kind, rest)
        more[name.strip()] = _numbers(values)
    people = more.pop("people", None)
    if people is not None:
        more["people"] = [_people(f"{number:.15g}") for number in people]
    return Weighted(column.text, _numbers(numbers), **more)


def _numbers(listed: str) -> tuple[float, ...]:
    with malformed_as(InputError, "weights are numbers with commas between them"):
        return tuple(float(item.text) for item in split_items(listed))


def _refuse(kind: str, rest: str) -> SamplingDesign:
    raise InputError(
        f"a sample is stated as {SAMPLE_FORMS}", received=quoted(f"{kind}:{rest}")
    )


def _people(text: str) -> int:
    with malformed_as(InputError, "a number of people is whole"):
        return int(text.replace("_", ""))


def _sizes(column: str, listed: str, domain: Domain) -> dict[Any, int]:
    """Return the people of each stratum, by the levels that the domain has.

    A level may be a quoted text with commas and equals signs in it, so `read_item`
    finds where it ends; the number behind it ends at the next comma.
    """
    levels = domain.attributes[domain.axis(column)].levels or ()
    by_text = {str(level): level for level in levels}
    sizes: dict[Any, int] = {}
    start = 0
    while start < len(listed):
        level, stop = read_item(listed, start, EQUALS)
        end = listed.find(",", stop)
        end = len(listed) if end < 0 else end
        if stop >= len(listed):
            raise InputError(
                "strata are listed as LEVEL=PEOPLE,LEVEL=PEOPLE",
                received=quoted(listed[start:]),
            )
        sizes[by_text.get(level.text, level.text)] = _people(listed[stop + 1 : end])
        start = end + 1
    return sizes
