"""Weights of a survey in few public classes, rounded at random so that means stay.

    weight      20       between the classes 16 and 32
    class       32       with the chance (20 - 16) / (32 - 16) = 1/4
                16       otherwise; 20 on average

The class is then an attribute like any other: weighted answers are sums of classes with
public coefficients (Lemma PN9), and rounding adds what Lemma PN21 says.
"""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.typing import AnyArray, FloatArray
from blowfish_fast._support.validation import malformed_as, quoted
from blowfish_fast.errors import InputError

KEY_BYTES = 16


def round_weights(
    weights: Any,
    classes: Any,
    *,
    person: Any = None,
    record: Any = None,
    key: str | None = None,
) -> FloatArray:
    """Round every weight to one of the two public classes next to it: Lemma PN21.

    The mean over the coins is the weight itself. The coin of a record is a keyed hash
    of person, record and weight, so the same record falls into the same class in
    whatever order records come; without a person coins are drawn anew. No attribute
    goes into it: where somebody moves to another cell, her class stays.

    Parameters
    ----------
    weights : array-like of float
        The weight of each record, from the least class to the largest.
    classes : sequence of float
        The public classes, in any order, as `Domain.from_weights` has them.
    person, record : array-like, optional
        Whose record each is, and which of hers; both, or neither.
    key : str, optional
        The secret by which coins are drawn, of a length that nobody guesses; drawn anew
        if left out. State it where a file is read more than once. It must not be
        chosen after a look at the records, nor told to anybody.

    Returns
    -------
    ndarray of float64
        The class of each record, to be counted under the attribute of weights.

    Raises
    ------
    InputError
        If a weight lies outside the classes, which does not say how many do; or only
        one of `person` and `record` is there.

    Examples
    --------
    >>> people, first = np.arange(4000), np.zeros(4000, dtype=int)
    >>> rounded = round_weights(np.full(4000, 20), [64, 32, 16], person=people,
    ...                         record=first, key="a secret of the office")
    >>> np.unique(rounded).tolist(), round(rounded.mean())
    ([16.0, 32.0], 20)
    """
    with malformed_as(InputError, "weights and classes are lists of numbers"):
        stated = np.asarray(weights, dtype=np.float64).reshape(-1)
        steps = np.unique(np.asarray(classes, dtype=np.float64).reshape(-1))
    if steps.size < 2 or not np.isfinite(steps).all() or steps[0] < 1.0:
        raise InputError(
            "classes of weights are two numbers or more, of 1 or more",
            received=quoted(classes),
        )
    # Not-a-number is in no range either.
    if not ((stated >= steps[0]) & (stated <= steps[-1])).all():
        raise InputError(
            f"weights lie between the least class, {steps[0]:g}, and the largest, "
            f"{steps[-1]:g}",
            received="some that do not, or none at all for a record",
            way_out="State classes that cover all weights of the design, by public "
            "facts: Domain.from_weights(largest=..., classes=...)",
        )
    below = np.minimum(np.searchsorted(steps, stated, side="right") - 1, steps.size - 2)
    low, high = steps[below], steps[below + 1]
    coins = _coins(stated, person, record, key)
    rounded: FloatArray = np.where(coins * (high - low) < stated - low, high, low)
    return rounded


def _coins(stated: FloatArray, person: Any, record: Any, key: str | None) -> FloatArray:
    """Return a number from 0 to 1 for each record, none of which tells of another."""
    if person is None and record is None:
        if key is not None:
            raise InputError("a key chooses by person and record; state both")
        fresh = np.frombuffer(secrets.token_bytes(8 * stated.size), dtype=np.uint64)
        return _parts_of_one(fresh)
    if person is None or record is None:
        raise InputError("person and record are stated together, or left out")
    if key is not None and (not isinstance(key, str) or not key):
        raise InputError("key is a text, or left out", received=quoted(type(key)))
    salt = key or secrets.token_hex(KEY_BYTES)
    whose, which = _as_texts(person, "person"), _as_texts(record, "record")
    if not whose.size == which.size == stated.size:
        raise InputError(
            "there are a person and a record for each weight",
            received=f"{whose.size} persons, {which.size} records and {stated.size} "
            "weights",
        )
    # 20 and 20.0 are one weight.
    named = np.char.add(np.char.add(which, "|"), stated.astype(str))
    bytes_of_key = np.frombuffer(salt.encode(), dtype=np.uint8)
    tags = kernels.keyed_tags(bytes_of_key, _rows_of(whose), _rows_of(named))
    return _parts_of_one(tags)


def _parts_of_one(words: AnyArray) -> FloatArray:
    """Return random words of 64 bits as numbers below 1, to 2^-53."""
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _as_texts(column: Any, word: str) -> AnyArray:
    """Return whole numbers or texts as texts; anything else has no one spelling."""
    values = np.asarray(column).reshape(-1)
    if values.dtype.kind == "O" and all(isinstance(at, str) for at in values.tolist()):
        values = values.astype(str)
    if values.dtype.kind not in "iuU":
        raise InputError(
            f"{word} is a column of whole numbers or text, without missing ones",
            received=f"dtype {values.dtype}",
        )
    return values.astype(str)


def _rows_of(texts: AnyArray) -> kernels.Texts:
    """Return texts as the bytes that are hashed."""
    plain = np.char.encode(texts, "utf-8", "surrogatepass")
    width = plain.dtype.itemsize
    starts = np.arange(plain.size, dtype=np.int64) * width
    data = np.frombuffer(plain.tobytes(), dtype=np.uint8)
    return kernels.Texts(data, starts, starts + np.char.str_len(plain))
