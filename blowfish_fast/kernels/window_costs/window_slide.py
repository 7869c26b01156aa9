"""Costs of all windows of one length, or of several, over stretches of cells.

Windows are named by their end: [end - length, end). Each runs through `moving_pointer`,
a thousand windows at a time; what they emit is finished into costs while it is near.

    ends        tile 0        tile 1        tile 2
              |-------------|-------------|----
    ranks of    [------- frame of tile 1 ------]     one tile before, for the starts

Ranks are those of the whole array, or local to a tile when the array has many more
distinct values than a window has cells: then the pointer walks over the values at hand.

A *recipe* (small int64 array) says how a window is finished:

    FORM        GRID_DEVIATION, FLOAT_DEVIATION, GRID_PINBALL, EXACT_PINBALL
    LENGTH      cells of the window
    SHIFT       its binary logarithm, or -1
    ABOVE       cells above the centre, or MEAN
    EXPONENT    costs are rounded down to multiples of 2^EXPONENT
    NUMERATOR, DENOMINATOR      the pinball level
    PENALTY     added to every cost
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from blowfish_fast._support.typing import AnyArray, IntArray, WordArray
from blowfish_fast.kernels._jit import kernel

from .moving_pointer import (
    CLOSED,
    EXHAUSTED,
    MEAN,
    MODE,
    STATE_SIZE,
    TREE,
    WALKING,
    Slides,
    open_window,
    plant_tree,
    rank_stretch,
    slide_tree,
    walk_windows,
)

FORM, LENGTH, SHIFT, ABOVE, EXPONENT, NUMERATOR, DENOMINATOR, PENALTY = range(8)
GRID_DEVIATION, FLOAT_DEVIATION, GRID_PINBALL, EXACT_PINBALL = range(4)

CHUNK = 1024

# Ranks of the whole array serve a window while it has at most this many distinct
# values per cell of the window; with more, the pointer would walk over strangers.
VALUES_PER_CELL = 16
SMALLEST_TILE = 512


def window_recipe(
    form: int,
    length: int,
    *,
    exponent: int = 0,
    penalty: int = 0,
    quantile: tuple[int, int] | None = None,
) -> IntArray:
    """Return the recipe for windows of one length.

    Parameters
    ----------
    form : int
        How the cost is finished; `GRID_DEVIATION` and so on.
    length : int
        Cells of the window.
    exponent : int, default 0
        Costs are rounded down to multiples of 2^exponent.
    penalty : int, default 0
        Added to every cost.
    quantile : tuple[int, int], optional
        Numerator a and denominator b. The centre is the smallest order statistic with
        at least a / b of the cells at or below it, which minimises the pinball cost of
        that level; without it the centre is the mean.

    Returns
    -------
    ndarray of int64, shape (8,)
        The recipe.
    """
    shift = length.bit_length() - 1 if length & (length - 1) == 0 else -1
    above = MEAN
    numerator, denominator = quantile or (0, 1)
    if quantile is not None:
        above = min((denominator - numerator) * length // denominator, length - 1)
    return np.array(
        [form, length, shift, above, exponent, numerator, denominator, penalty],
        dtype=np.int64,
    )


@kernel
def _finish_deviations(
    whole: IntArray, part: IntArray, recipe: IntArray, row: IntArray
) -> None:
    # deviation / 2^exponent = (whole - part / 2^shift) * 2^(1 - exponent)
    up = max(1 - recipe[EXPONENT], 0)
    down = max(recipe[EXPONENT] - 1, 0)
    left = max(up - recipe[SHIFT], 0)
    right = max(recipe[SHIFT] - up, 0)
    ceiling = (np.int64(1) << right) - 1
    penalty = recipe[PENALTY]
    for i in range(row.size):
        low = ((part[i] << left) + ceiling) >> right
        row[i] = (((whole[i] << up) - low) >> down) + penalty


@kernel
def _finish_floats(
    whole: IntArray, part: IntArray, recipe: IntArray, row: IntArray
) -> None:
    # Taking the whole quotient off first leaves nothing to cancel in the floats.
    length = recipe[LENGTH]
    floats = row.view(np.float64)
    for i in range(row.size):
        twice = 2 * part[i]
        quotient = twice // length
        remainder = twice - quotient * length
        floats[i] = np.float64(2 * whole[i] - quotient) - np.float64(
            remainder
        ) / np.float64(length)


@kernel
def _finish_pinball(
    whole: IntArray, part: IntArray, recipe: IntArray, row: IntArray
) -> None:
    # cost / 2^exponent = (whole - weight * part / denominator) * 2^-exponent; `part`
    # is divided before it is multiplied, so nothing outgrows the cost itself.
    up = max(-recipe[EXPONENT], 0)
    down = max(recipe[EXPONENT], 0)
    denominator = recipe[DENOMINATOR]
    weight = denominator - recipe[NUMERATOR]
    penalty = recipe[PENALTY]
    if denominator & (denominator - 1) == 0:
        mask = denominator - 1
        bits = np.int64(0)
        while (np.int64(1) << bits) < denominator:
            bits += 1
        for i in range(row.size):
            low = ((weight * (part[i] & mask) << up) + mask) >> bits
            high = whole[i] - weight * (part[i] >> bits)
            row[i] = (((high << up) - low) >> down) + penalty
    else:
        for i in range(row.size):
            quotient = part[i] // denominator
            remainder = part[i] - quotient * denominator
            low = ((weight * remainder << up) + denominator - 1) // denominator
            high = whole[i] - weight * quotient
            row[i] = (((high << up) - low) >> down) + penalty


@kernel
def _finish_exact_pinball(
    whole: IntArray, part: IntArray, recipe: IntArray, row: IntArray
) -> None:
    denominator = recipe[DENOMINATOR]
    weight = denominator - recipe[NUMERATOR]
    for i in range(row.size):
        row[i] = denominator * whole[i] - weight * part[i]


@kernel
def finish_windows(
    whole: IntArray, part: IntArray, recipe: IntArray, row: IntArray
) -> None:
    """Turn what the windows emitted into costs; floats are stored by their bits.

    Parameters
    ----------
    whole : ndarray of int64
        The first number of each window.
    part : ndarray of int64
        The second one.
    recipe : ndarray of int64, shape (8,)
        How a window is finished.
    row : ndarray of int64
        Receives the costs.
    """
    if recipe[FORM] == GRID_DEVIATION:
        _finish_deviations(whole, part, recipe, row)
    elif recipe[FORM] == FLOAT_DEVIATION:
        _finish_floats(whole, part, recipe, row)
    elif recipe[FORM] == GRID_PINBALL:
        _finish_pinball(whole, part, recipe, row)
    else:
        _finish_exact_pinball(whole, part, recipe, row)


@kernel
def slide_windows(
    values: IntArray,
    ranks: AnyArray,
    table: IntArray,
    first: int,
    recipe: IntArray,
    state: IntArray,
    tally: AnyArray,
    tree: IntArray,
    scratch: IntArray,
    row: IntArray,
) -> int:
    """Cost the windows that end at `first`, `first` + 1, ... until `row` is full.

    Parameters
    ----------
    values : ndarray of int64
        Cells; ends are counted from the first of them.
    ranks : ndarray of int32
        Their ranks.
    table : ndarray of int64, shape (distinct + 2,)
        The value of each rank, between two sentinels.
    first : int
        The first end.
    recipe : ndarray of int64, shape (8,)
        Length of the window, and how it is finished.
    state : ndarray of int64, shape (STATE_SIZE,)
        With mode CLOSED the window is opened anew, otherwise it stands at the one that
        ends at ``first - 1``.
    tally : ndarray of int32
        Cells of the window by rank; belongs to this length, as the state.
    tree : ndarray of int64
        Empty, or room for 2 distinct + 4 entries.
    scratch : ndarray of int64, shape (2, CHUNK)
        Room.
    row : ndarray of int64
        Receives the costs.

    Returns
    -------
    int
        The number of windows done: fewer than ``row.size`` when the steps are spent and
        there is no room for a tree.
    """
    length = recipe[LENGTH]
    shift = recipe[SHIFT]
    above = recipe[ABOVE]
    for begun in range(0, row.size, CHUNK):
        size = min(CHUNK, row.size - begun)
        whole = scratch[0, :size]
        part = scratch[1, :size]
        start = first + begun - length
        done = 0
        if state[MODE] == CLOSED:
            open_window(
                values[start:], ranks[start:], length, shift, above, table, tally,
                state, whole, part,
            )  # fmt: skip
            done = 1
        before = start + done - 1
        if state[MODE] == WALKING and done < size:
            slides = Slides(
                values[before:], values[before + length :], ranks[before:],
                ranks[before + length :],
            )  # fmt: skip
            rest = (table, tally, state, whole[done:], part[done:])
            if above < 0:
                done += walk_windows(slides, length, shift, None, *rest)
            else:
                done += walk_windows(slides, length, shift, above, *rest)
        if state[MODE] == EXHAUSTED:
            if tree.size < 2 * table.size:
                finish_windows(
                    whole[:done], part[:done], recipe, row[begun : begun + done]
                )
                return begun + done
            plant_tree(tally, table, tree)
            state[MODE] = TREE
        if state[MODE] == TREE and done < size:
            before = start + done - 1
            slides = Slides(
                values[before:], values[before + length :], ranks[before:],
                ranks[before + length :],
            )  # fmt: skip
            slide_tree(
                slides, length, shift, above, table, tree, state, whole[done:],
                part[done:],
            )  # fmt: skip
        finish_windows(whole, part, recipe, row[begun : begun + size])
    return row.size


class TileRoom(NamedTuple):
    """Scratch of `slide_tiles`, for ``2 tile`` cells.

    Attributes
    ----------
    bitmap : ndarray of uint64
        Scratch of `rank_stretch`.
    marks_before : ndarray of int32
        Scratch of `rank_stretch`.
    ranks : ndarray of int32
        Ranks local to a tile and the one before it.
    table : ndarray of int64
        The value of each rank.
    tally : ndarray of int32
        Cells of the window by rank.
    tree : ndarray of int64
        Room for a Fenwick tree.
    scratch : ndarray of int64
        Room for what windows emit.
    """

    bitmap: WordArray
    marks_before: AnyArray
    ranks: AnyArray
    table: IntArray
    tally: AnyArray
    tree: IntArray
    scratch: IntArray


def tile_room(tile: int, words: int, scratch: IntArray) -> TileRoom:
    """Return room for tiles.

    Parameters
    ----------
    tile : int
        Ends of a tile.
    words : int
        Words of the bitmaps that rank a tile.
    scratch : ndarray of int64, shape (2, CHUNK)
        Room for what windows emit.

    Returns
    -------
    TileRoom
        The room.
    """
    return TileRoom(
        np.empty(words, dtype=np.uint64),
        np.empty(words, dtype=np.int32),
        np.empty(2 * tile, dtype=np.int32),
        np.empty(2 * tile + 2, dtype=np.int64),
        np.empty(2 * tile + 2, dtype=np.int32),
        np.empty(4 * tile + 4, dtype=np.int64),
        scratch,
    )


@kernel
def slide_tiles(
    values: IntArray,
    parent: AnyArray,
    parent_distinct: int,
    first: int,
    ends: int,
    tile: int,
    recipes: IntArray,
    room: TileRoom,
    rows: IntArray,
) -> int:
    """Cost several lengths with ranks local to tiles.

    Parameters
    ----------
    values : ndarray of int64
        Cells from `tile` cells before the first end on, or from the beginning of the
        array.
    parent : ndarray of int32
        Their ranks in the whole array.
    parent_distinct : int
        Number of different values in the whole array.
    first : int
        The first end.
    ends : int
        How many ends.
    tile : int
        Ends of a tile.
    recipes : ndarray of int64, shape (lengths, 8)
        A recipe for each length.
    room : TileRoom
        Scratch.
    rows : ndarray of int64, shape (lengths, ends)
        Receives the costs; an end before which a window has no room is left alone.

    Returns
    -------
    int
        How many times a Fenwick tree was needed.
    """
    ranks, table, tally = room.ranks, room.table, room.tally
    state = np.zeros(STATE_SIZE, dtype=np.int64)
    trees = 0
    for offset in range(0, ends, tile):
        begin = max(first - 1 + offset - tile, 0)
        end = first - 1 + min(offset + tile, ends)
        distinct = rank_stretch(
            parent[begin:end], parent_distinct, values[begin:end], room.bitmap,
            room.marks_before, ranks, table,
        )  # fmt: skip
        for index in range(recipes.shape[0]):
            recipe = recipes[index]
            skipped = max(recipe[LENGTH] - (first + offset), 0)
            if skipped >= end - (first - 1 + offset):
                continue
            state[MODE] = CLOSED
            slide_windows(
                values[begin:end], ranks, table[: distinct + 2],
                first + offset + skipped - begin, recipe, state, tally, room.tree,
                room.scratch, rows[index, offset + skipped : min(offset + tile, ends)],
            )  # fmt: skip
            trees += state[MODE] == TREE
    return trees


@dataclass
class Slide:
    """A window length whose state is carried from one stretch of ends to the next.

    Attributes
    ----------
    recipe : ndarray of int64, shape (8,)
        Length of the window, and how it is finished.
    tally : ndarray of int32
        Cells of the window by rank.
    state : ndarray of int64
        Where the pointer stands.
    tree : ndarray of int64
        Room for a Fenwick tree, once it is needed.
    """

    recipe: IntArray
    tally: AnyArray
    state: IntArray = field(default_factory=lambda: np.zeros(STATE_SIZE, np.int64))
    tree: IntArray = field(default_factory=lambda: np.empty(0, np.int64))

    def fill(
        self,
        values: IntArray,
        ranks: AnyArray,
        table: IntArray,
        first: int,
        scratch: IntArray,
        row: IntArray,
    ) -> None:
        """Cost the windows that end at `first`, `first` + 1, ..., a row of them.

        Parameters
        ----------
        values : ndarray of int64
            Cells; ends are counted from the first of them.
        ranks : ndarray of int32
            Their ranks.
        table : ndarray of int64, shape (distinct + 2,)
            The value of each rank.
        first : int
            The first end.
        scratch : ndarray of int64, shape (2, CHUNK)
            Room.
        row : ndarray of int64
            Receives the costs.
        """
        done = 0
        while done < row.size:
            done += slide_windows(
                values, ranks, table, first + done, self.recipe, self.state,
                self.tally, self.tree, scratch, row[done:],
            )  # fmt: skip
            if done < row.size:
                self.tree = np.empty(2 * table.size, dtype=np.int64)
