"""Every deliberate error of the package, as fields that each face words for its reader.

Other faces than Python reword fields by code, from tables of their own. Whatever a
caller can cause descends from `BlowfishError`; an ``AssertionError`` would be our bug.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple


class Wording(NamedTuple):
    """Fields for another reader, with data in braces; None keeps one, "" drops it.

    Parameters
    ----------
    rule : str, optional
        The rule that was broken.
    received : str, optional
        What was received.
    way_out : str, optional
        What to do instead.
    """

    rule: str | None = None
    received: str | None = None
    way_out: str | None = None


PYTHON: Mapping[str, Wording] = {}


class BlowfishError(Exception):
    """The root of every deliberate error.

    Parameters
    ----------
    rule : str, default ''
        What must hold.
    received : object, optional
        What came instead, never a record.
    way_out : str, optional
        What the caller can do.
    code : str, optional
        A stable name of this refusal; that of its class by default.
    data : mapping of str to object, optional
        Facts that another wording of it needs, by the names that it puts them in.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> try:
    ...     bf.Domain(0)
    ... except bf.BlowfishError as problem:
    ...     print(problem)
    each attribute needs at least one cell; received shape 0. A domain of n
    ordered values is Domain(n)
    >>> print(BlowfishError("cells are whole", received=1.5, way_out="Round it"))
    cells are whole; received 1.5. Round it
    """

    def __init__(
        self,
        rule: str = "",
        *,
        received: object = None,
        way_out: str | None = None,
        code: str | None = None,
        data: Mapping[str, object] | None = None,
    ) -> None:
        self.rule = rule
        self.received = None if received is None else str(received)
        self.way_out = way_out
        self.code = code or type(self).__name__
        self.data = dict(data or {})
        super().__init__(compose_message(rule, self.received, way_out))

    def to_dict(
        self,
        wordings: Mapping[str, Wording] = PYTHON,
        show: Callable[[object], str] = str,
    ) -> dict[str, str | None]:
        """Return kind, code, rule, received, way out and message, for JSON.

        Parameters
        ----------
        wordings : Mapping[str, Wording], default PYTHON
            Fields that are replaced, by code.
        show : callable
            Writes a value of `data` into them.

        Returns
        -------
        dict[str, str or None]
            Plain data.

        Examples
        --------
        >>> problem = InputError(
        ...     "cells are whole", code="whole_cells", data={"value": 1.5}
        ... )
        >>> shorter = {"whole_cells": Wording(way_out="{value} is between two")}
        >>> problem.to_dict(shorter)["message"]
        'cells are whole. 1.5 is between two'
        """
        fields = {
            "rule": self.rule,
            "received": self.received,
            "way_out": self.way_out,
        }
        data = {name: show(value) for name, value in self.data.items()}
        for name, text in wordings.get(self.code, Wording())._asdict().items():
            if text is not None:
                fields[name] = text.format(**data) or None
        message = compose_message(
            fields["rule"] or "", fields["received"], fields["way_out"]
        )
        kind = type(self).__name__
        return {"kind": kind, "code": self.code, **fields, "message": message}


def compose_message(rule: str, received: str | None, way_out: str | None) -> str:
    """Return ``rule; received X. way_out``, without the parts that are None.

    Parameters
    ----------
    rule : str
        What must hold.
    received : str or None
        What came instead.
    way_out : str or None
        What the caller can do.

    Returns
    -------
    str
        The message.
    """
    message = rule if received is None else f"{rule}; received {received}"
    return message if way_out is None else f"{message}. {way_out}"


def nearest(word: str, known: Iterable[str]) -> str:
    """Return " (did you mean ...?)" where a known word is close, else nothing.

    Parameters
    ----------
    word : str
        The word that was given.
    known : Iterable[str]
        The words that are right.

    Returns
    -------
    str
        A part of a message.

    Examples
    --------
    >>> nearest("incone", ["age", "income"])
    " (did you mean 'income'?)"
    """
    by_small_letters = {right_word.lower(): right_word for right_word in known}
    close = difflib.get_close_matches(word.lower(), list(by_small_letters), n=1)
    # A word that is known, but lacks what follows it, is no advice.
    meant = by_small_letters[close[0]] if close else word
    return "" if meant == word else f" (did you mean {meant!r}?)"


class InputError(BlowfishError, ValueError):
    """An argument breaks a rule that its documentation states."""


class DomainError(InputError):
    """A domain, or an object laid over a domain, does not fit."""


class CountsError(InputError):
    """Counts are not non-negative whole numbers that fit the domain."""


class EpsilonError(InputError):
    """Epsilon, or a share of it, lies outside its range."""


class PolicyError(InputError):
    """A policy cannot be built or used as asked."""


class WorkloadError(InputError):
    """Queries are malformed or leave the domain."""


class SizeError(InputError):
    """The answer would be too large to hold; the message gives its size."""


class BudgetError(BlowfishError):
    """A step asks for more epsilon than remains; nothing was drawn."""


class PrivacyError(BlowfishError):
    """A mechanism tried to do what its guarantee does not cover; nothing was drawn."""


class FailedDrawError(BlowfishError):
    """A release failed after it had looked at the data; these words never change.

    What went wrong, and where, may depend on the draw, so nobody is told. A ledger
    keeps the failure as the outcome of its charge: asking again returns it again.

    Examples
    --------
    >>> FailedDrawError().code
    'FailedDrawError'
    """

    def __init__(self) -> None:
        super().__init__(
            "the release failed after it had looked at the data, and what went wrong "
            "may depend on the data, so it is not told",
            way_out="The failure is what this release returns, and what it cost is "
            "spent. Ask another question, or try this one on made-up data with a seed, "
            "where errors are shown as they are",
        )

    def __reduce__(self) -> tuple[type[FailedDrawError], tuple[()]]:
        return type(self), ()


class PlugInError(BlowfishError):
    """Code that was defined outside the package failed; its exception is the cause.

    No data had been read, or the noise was seeded, where errors are shown as they are.
    """


class DataDependentError(BlowfishError):
    """The error depends on the data, so it cannot be predicted without paying."""


class IntervalError(BlowfishError):
    """The release lacks what intervals need, for ``data["queries"]`` if stated."""


class NoiseOnlyWarning(UserWarning):
    """Intervals hold the noise, and not what buckets taken as even are off by."""


class ShrunkCellsWarning(UserWarning):
    """Sums are asked of cells that were shrunk towards 0, each for itself."""


class SeededWarning(UserWarning):
    """A file is written from a release whose noise was seeded: an experiment."""


class NoEstimateError(BlowfishError, AttributeError):
    """A release of something else than one histogram holds no estimate of it."""


class RandomnessError(BlowfishError):
    """A random stream would be used where its secrecy is not assured."""


class ReleaseFileError(InputError):
    """A release file is damaged, foreign or of a newer format."""


class LedgerError(BlowfishError):
    """A ledger cannot be opened, read or written, or a request contradicts it."""


class MissingExtraError(BlowfishError, ImportError):
    """An optional dependency is not installed; the message names the extra."""


class CatalogError(InputError):
    """A table, attribute or policy that the catalog does not know or cannot hold."""


class QuestionError(InputError):
    """A question that does not fit its table."""


class EngineError(BlowfishError):
    """A database that cannot be reached, or a table that is not as stated."""
