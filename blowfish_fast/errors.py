"""Every deliberate error of the package.

A message states the rule, the value received and the way out. Whatever the caller
can cause descends from `BlowfishError`; an ``AssertionError`` would be our own bug.
"""

from __future__ import annotations


class BlowfishError(Exception):
    """The root of every deliberate error.

    Examples
    --------
    >>> import blowfish_fast as bf
    >>> try:
    ...     bf.Domain(0)
    ... except bf.BlowfishError as problem:
    ...     print(problem)
    each attribute needs at least one cell; received shape 0. A domain of n
    ordered values is Domain(n)
    """


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


class DataDependentError(BlowfishError):
    """The error depends on the data, so it cannot be predicted without paying."""


class IntervalError(BlowfishError):
    """The release does not carry what an interval for these queries needs."""


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
