"""Which records of each person are chosen: the first k by a keyed hash of their keys.

    rows       0    1    2    3    4    5
    person     7    9    7    7    9    7        grouped:  7 | 0 2 3 5    9 | 1 4
    tag       d3   07   1a   88   5b   1a        md5 of "key|person|record"
    first 2              x              x        tags 1a 1a | 88 d3: equal tags together

The tag of a record is the first half of the md5 of "key|person|record", so what is
chosen of one person depends on nothing that others have, nor on the values of records.
Databases compute the same tag, md5 of the same text.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import AnyArray, BoolArray, IntArray
from blowfish_fast.kernels._arguments import as_input
from blowfish_fast.kernels._jit import helper, kernel

# Bytes of an md5 block, and of the length of the message at the end of the last one.
BLOCK, LENGTH_BYTES = 64, 8
# Messages that are hashed side by side: their words stay in the nearest cache.
LANES = 256
# Tags of a person that are put in order one by one, which needs no memory.
FEW = 32


class Texts(NamedTuple):
    """Texts of bytes laid end to end: row i is ``data[starts[i]:ends[i]]``.

    Attributes
    ----------
    data : ndarray of uint8
        The bytes of all texts.
    starts : ndarray of int64, shape (rows,)
        The first byte of each text.
    ends : ndarray of int64, shape (rows,)
        The byte after its last.
    """

    data: AnyArray
    starts: IntArray
    ends: IntArray


ROUNDS = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]]
SHIFTS = np.tile(np.array(ROUNDS, dtype=np.uint32), 4).reshape(-1)
SINES = np.floor(np.abs(np.sin(np.arange(1.0, 65.0))) * 2.0**32).astype(np.uint32)
FIRST_STATE = np.array([0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476], np.uint32)


@helper
def _turned(total: np.uint64, shift: np.uint32) -> np.uint32:
    """Turn the last 32 bits of a sum to the left."""
    mixed = np.uint32(total)
    return np.uint32((mixed << shift) | (mixed >> (np.uint32(32) - shift)))


@kernel
def _md5_blocks(state: AnyArray, words: AnyArray) -> None:
    """Work a block of each message into its state (RFC 1321): a column per message."""
    ones = np.uint32(0xFFFFFFFF)
    for step in range(64):
        a, b = state[(64 - step) & 3], state[(65 - step) & 3]
        c, d = state[(66 - step) & 3], state[(67 - step) & 3]
        sine, shift = SINES[step], SHIFTS[step]
        if step < 16:
            word = words[step]
            for at in range(a.size):
                mixed = (b[at] & c[at]) | ((b[at] ^ ones) & d[at])
                a[at] = b[at] + _turned(a[at] + mixed + sine + word[at], shift)
        elif step < 32:
            word = words[(5 * step + 1) & 15]
            for at in range(a.size):
                mixed = (d[at] & b[at]) | ((d[at] ^ ones) & c[at])
                a[at] = b[at] + _turned(a[at] + mixed + sine + word[at], shift)
        elif step < 48:
            word = words[(3 * step + 5) & 15]
            for at in range(a.size):
                mixed = b[at] ^ c[at] ^ d[at]
                a[at] = b[at] + _turned(a[at] + mixed + sine + word[at], shift)
        else:
            word = words[(7 * step) & 15]
            for at in range(a.size):
                mixed = c[at] ^ (b[at] | (d[at] ^ ones))
                a[at] = b[at] + _turned(a[at] + mixed + sine + word[at], shift)


@kernel
def _messages(
    key: AnyArray, persons: Texts, records: Texts, low: int, high: int
) -> tuple[AnyArray, IntArray]:
    """Return "key|person|record" of some rows, filled up to whole blocks of md5."""
    longest = 0
    for row in range(low, high):
        own = persons.ends[row] - persons.starts[row]
        longest = max(longest, own + records.ends[row] - records.starts[row])
    most = (key.size + longest + 2 + LENGTH_BYTES) // BLOCK + 1
    messages = np.zeros((high - low, most * BLOCK), dtype=np.uint8)
    blocks = np.empty(high - low, dtype=np.int64)
    for lane in range(high - low):
        message, row = messages[lane], low + lane
        for at in range(key.size):
            message[at] = key[at]
        at = key.size
        for data, begin, end in (
            (persons.data, persons.starts[row], persons.ends[row]),
            (records.data, records.starts[row], records.ends[row]),
        ):
            message[at] = 124
            at += 1
            for place in range(begin, end):
                message[at] = data[place]
                at += 1
        message[at] = 128
        blocks[lane] = (at + LENGTH_BYTES) // BLOCK + 1
        for byte in range(LENGTH_BYTES):
            place = blocks[lane] * BLOCK - LENGTH_BYTES + byte
            message[place] = ((8 * at) >> (8 * byte)) & 255
    return messages, blocks


def keyed_tags(key: AnyArray, persons: Texts, records: Texts) -> AnyArray:
    """Return the first half of md5 of "key|person|record" for each row, as uint64.

    The numbers sort as the hexadecimal texts do.

    Parameters
    ----------
    key : ndarray of uint8
        The bytes of the secret key.
    persons : Texts
        The person of each row.
    records : Texts
        The key of each record.

    Returns
    -------
    ndarray of uint64, shape (rows,)
        The tags.
    """
    kinds = np.uint8, np.int64, np.int64
    texts = [
        Texts(*map(as_input, texts_of_rows, kinds))
        for texts_of_rows in (persons, records)
    ]
    return _tags(as_input(key, np.uint8), *texts)


@kernel
def _tags(key: AnyArray, persons: Texts, records: Texts) -> AnyArray:
    tags = np.zeros(persons.starts.size, dtype=np.uint64)
    for low in range(0, tags.size, LANES):
        high = min(low + LANES, tags.size)
        messages, blocks = _messages(key, persons, records, low, high)
        words = np.ascontiguousarray(messages.view(np.uint32).T)
        state = np.empty((4, high - low), dtype=np.uint32)
        for part in range(4):
            for lane in range(high - low):
                state[part, lane] = FIRST_STATE[part]
        for block in range(words.shape[0] // 16):
            before = state.copy()
            _md5_blocks(state, words[16 * block : 16 * block + 16])
            for part in range(4):
                for lane in range(high - low):
                    added = state[part, lane] if block < blocks[lane] else np.uint32(0)
                    state[part, lane] = before[part, lane] + added
        for lane in range(high - low):
            for byte in range(8):
                part = state[byte // 4, lane] >> np.uint32(8 * (byte % 4))
                tag = tags[low + lane] << np.uint64(8)
                tags[low + lane] = tag | np.uint64(part & np.uint32(255))
    return tags


@kernel
def first_by_tag(
    starts: IntArray, rows: IntArray, tags: AnyArray, most: int
) -> BoolArray:
    """Mark the rows of each group that are among its first `most` by tag.

    The tag of rank `most`, from 0, is the first that is not chosen, so rows with equal
    tags are chosen or dropped together. Few tags are sorted by insertion, which needs
    no call; most groups are small.

    Parameters
    ----------
    starts : ndarray of int64, shape (groups + 1,)
        Where each group begins in `rows`; each has more than `most` rows.
    rows : ndarray of int64
        The rows, group by group.
    tags : ndarray of uint64
        The tag of each row.
    most : int
        How many rows of a group are chosen.

    Returns
    -------
    ndarray of bool
        One mark per row.
    """
    chosen = np.empty(rows.size, dtype=np.bool_)
    grouped = tags[rows]
    for group in range(starts.size - 1):
        begin, end = starts[group], starts[group + 1]
        own = grouped[begin:end]
        if own.size > FEW:
            own.sort()
        for place_of_tag in range(1, min(own.size, FEW)):
            tag, at = own[place_of_tag], place_of_tag
            while at > 0 and own[at - 1] > tag:
                own[at] = own[at - 1]
                at -= 1
            own[at] = tag
        for place in range(begin, end):
            chosen[rows[place]] = tags[rows[place]] < own[most]
    return chosen
