"""Which records of each person are kept: the first k by a keyed hash of their keys.

The tag of a record is the md5 of "key|person|record", so what is kept of one person
depends on nothing that others have, nor on the values of records. Databases compute the
same tag.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import AnyArray, BoolArray, IntArray
from blowfish_fast.kernels._jit import helper, kernel

# Bytes of an md5 block, and where the length of the message stands in the last one.
BLOCK, LENGTH_AT = 64, 56
# Characters of a 64-bit number, its sign included.
MOST_DIGITS = 20


class Texts(NamedTuple):
    """Texts of bytes laid end to end: row i is ``data[starts[i]:ends[i]]``."""

    data: AnyArray
    starts: IntArray
    ends: IntArray


@kernel
def _write_digits(
    values: IntArray, data: AnyArray, starts: IntArray, ends: IntArray
) -> None:
    digits = np.empty(MOST_DIGITS, dtype=np.uint8)
    place = 0
    for row in range(values.size):
        starts[row] = place
        value = values[row]
        if value < 0:
            data[place] = 45
            place += 1
        length = 0
        # Remainders of negative numbers are taken one by one: -2^63 has no opposite.
        while True:
            quotient = value // 10
            digit = value - quotient * 10
            if value < 0 and digit != 0:
                quotient += 1
                digit = 10 - digit
            digits[length] = 48 + digit
            length += 1
            value = quotient
            if value == 0:
                break
        for one in range(length):
            data[place + one] = digits[length - 1 - one]
        place += length
        ends[row] = place


def decimal_texts(values: IntArray) -> Texts:
    """Return whole numbers as decimal texts. O(rows)."""
    whole = np.ascontiguousarray(values, dtype=np.int64)
    largest = 0 if whole.size == 0 else max(abs(int(whole.min())), int(whole.max()))
    width = len(str(largest)) + 1
    data = np.empty(whole.size * width, dtype=np.uint8)
    starts, ends = np.empty_like(whole), np.empty_like(whole)
    _write_digits(whole, data, starts, ends)
    return Texts(data, starts, ends)


ROUNDS = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]]
SHIFTS = np.tile(np.array(ROUNDS, dtype=np.uint32), 4).reshape(-1)
SINES = np.floor(np.abs(np.sin(np.arange(1.0, 65.0))) * 2.0**32).astype(np.uint32)
FIRST_STATE = np.array([0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476], np.uint32)


@helper
def _turned(total: np.uint64, b: np.uint64, step: int, word: np.uint64) -> np.uint64:
    """Add the constant and the word of a step, turn by its shift, add b."""
    mask = np.uint64(0xFFFFFFFF)
    mixed = (total + np.uint64(SINES[step]) + word) & mask
    shift = np.uint64(SHIFTS[step])
    turned = ((mixed << shift) | (mixed >> (np.uint64(32) - shift))) & mask
    return (b + turned) & mask


@kernel
def _md5_block(state: AnyArray, block: AnyArray, words: AnyArray) -> None:
    """Work one block of 64 bytes into the state (RFC 1321)."""
    mask = np.uint64(0xFFFFFFFF)
    for word in range(16):
        at = 4 * word
        words[word] = (
            np.uint64(block[at])
            | (np.uint64(block[at + 1]) << np.uint64(8))
            | (np.uint64(block[at + 2]) << np.uint64(16))
            | (np.uint64(block[at + 3]) << np.uint64(24))
        )
    a, b = np.uint64(state[0]), np.uint64(state[1])
    c, d = np.uint64(state[2]), np.uint64(state[3])
    for step in range(16):
        mixed = (b & c) | ((b ^ mask) & d)
        a, d, c, b = d, c, b, _turned(a + mixed, b, step, words[step])
    for step in range(16, 32):
        mixed = (d & b) | ((d ^ mask) & c)
        a, d, c, b = d, c, b, _turned(a + mixed, b, step, words[(5 * step + 1) & 15])
    for step in range(32, 48):
        mixed = b ^ c ^ d
        a, d, c, b = d, c, b, _turned(a + mixed, b, step, words[(3 * step + 5) & 15])
    for step in range(48, 64):
        mixed = c ^ (b | (d ^ mask))
        a, d, c, b = d, c, b, _turned(a + mixed, b, step, words[(7 * step) & 15])
    state[0] = (np.uint64(state[0]) + a) & mask
    state[1] = (np.uint64(state[1]) + b) & mask
    state[2] = (np.uint64(state[2]) + c) & mask
    state[3] = (np.uint64(state[3]) + d) & mask


@helper
def _as_printed(state: AnyArray, first: int) -> np.uint64:
    """Return half of the digest as a number that sorts as its hexadecimal text."""
    number = np.uint64(0)
    for word in range(first, first + 2):
        part = np.uint64(state[word])
        for byte in range(4):
            digit = (part >> np.uint64(8 * byte)) & np.uint64(255)
            number = (number << np.uint64(8)) | digit
    return number


@kernel
def keyed_tags(
    key: AnyArray, persons: Texts, records: Texts, rows: IntArray
) -> AnyArray:
    """Return md5 of "key|person|record" for some rows, (rows, 2) as uint64.

    The two halves sort as the hexadecimal text does.
    """
    tags = np.empty((rows.size, 2), dtype=np.uint64)
    state = np.empty(4, dtype=np.uint64)
    words = np.empty(16, dtype=np.uint64)
    block = np.zeros(BLOCK, dtype=np.uint8)
    for number in range(rows.size):
        row = rows[number]
        for word in range(4):
            state[word] = FIRST_STATE[word]
        filled = length = 0
        for part in range(3):
            if part == 0:
                data, begin, end = key, 0, key.size
            elif part == 1:
                data, begin, end = persons.data, persons.starts[row], persons.ends[row]
            else:
                data, begin, end = records.data, records.starts[row], records.ends[row]
            for at in range(begin, end + (1 if part < 2 else 0)):
                block[filled] = data[at] if at < end else 124
                filled += 1
                length += 1
                if filled == BLOCK:
                    _md5_block(state, block, words)
                    filled = 0
        block[filled] = 128
        filled += 1
        if filled > LENGTH_AT:
            block[filled:] = 0
            _md5_block(state, block, words)
            filled = 0
        block[filled:] = 0
        bits = np.uint64(8 * length)
        for byte in range(8):
            block[LENGTH_AT + byte] = (bits >> np.uint64(8 * byte)) & np.uint64(255)
        _md5_block(state, block, words)
        tags[number, 0] = _as_printed(state, 0)
        tags[number, 1] = _as_printed(state, 2)
    return tags


def rows_of_large_groups(starts: IntArray, rows: IntArray, most: int) -> IntArray:
    """Return the rows, group by group, of groups with more than `most` of them."""
    sizes = np.diff(starts)
    return rows[np.repeat(sizes > most, sizes)]


@kernel
def first_by_tag(
    starts: IntArray, rows: IntArray, tags: AnyArray, most: int
) -> BoolArray:
    """Mark the rows of each group that are among its first `most` by tag.

    `tags` belong to `rows_of_large_groups`. Rows with equal tags stay together.
    """
    kept = np.ones(rows.size, dtype=np.bool_)
    place = 0
    for group in range(starts.size - 1):
        begin, size = starts[group], starts[group + 1] - starts[group]
        if size <= most:
            continue
        order = np.argsort(tags[place : place + size, 0])
        # The first halves of md5 do not meet by chance; where they are equal, and the
        # second halves differ, these decide.
        for one in range(1, size):
            moved = order[one]
            at = one
            while at > 0 and (
                tags[place + order[at - 1], 0] == tags[place + moved, 0]
                and tags[place + order[at - 1], 1] > tags[place + moved, 1]
            ):
                order[at] = order[at - 1]
                at -= 1
            order[at] = moved
        one = 0
        while one < size:
            high, low = tags[place + order[one], 0], tags[place + order[one], 1]
            after = one
            while after < size and (
                tags[place + order[after], 0] == high
                and tags[place + order[after], 1] == low
            ):
                after += 1
            # Its rank from 0 is `one`, and `after - one` rows share its key.
            if after > most:
                for late in range(one, after):
                    kept[rows[begin + order[late]]] = False
            one = after
        place += size
    return kept
